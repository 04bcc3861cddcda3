package main

import (
	"bytes"
	"strings"
	"sync"
)

// watchBuffer keeps what a program writes and tells when a text appeared.
type watchBuffer struct {
	seen chan struct{} // closed when the text was there

	mu   sync.Mutex
	buf  bytes.Buffer
	text string
	once sync.Once
}

// watchLimit bounds what is kept of a program's messages.
const watchLimit = 1 << 20

func newWatchBuffer(text string) *watchBuffer {
	b := &watchBuffer{seen: make(chan struct{}), text: text}
	if text == "" {
		close(b.seen)
		b.once.Do(func() {})
	}
	return b
}

// Write implements io.Writer.
func (b *watchBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.buf.Len() < watchLimit {
		b.buf.Write(p)
	}
	if b.text != "" && strings.Contains(b.buf.String(), b.text) {
		b.once.Do(func() { close(b.seen) })
		b.text = ""
	}
	return len(p), nil
}

// String returns what was written so far.
func (b *watchBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.TrimSpace(b.buf.String())
}
