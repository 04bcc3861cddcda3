package main

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
)

// watchLog takes the daemon's log apart while it is written.
type watchLog struct {
	mu      sync.Mutex
	partial []byte
	hot     map[string]bool // keys that were said to be hot
	levels  map[string]int
	bad     []string // unexpected lines of level ERROR
	last    []string // a few lines, for when it cannot start
}

const (
	badLimit  = 20
	lastLimit = 10
)

var (
	hotLine   = regexp.MustCompile(`msg="key is hot" key=("[^"]*"|\S+)`)
	levelWord = regexp.MustCompile(`level=([A-Z]+)`)

	// expected are the errors that the soak itself causes: a bad
	// configuration, Redis down, the device down or gone.
	expected = regexp.MustCompile(`(?i)reload|config|publish|redis|interface|capture|device`)
)

// Write implements io.Writer.
func (l *watchLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, p...)
	for {
		end := bytes.IndexByte(l.partial, '\n')
		if end < 0 {
			return len(p), nil
		}
		l.line(string(l.partial[:end]))
		l.partial = l.partial[end+1:]
	}
}

func (l *watchLog) line(text string) {
	if l.hot == nil {
		l.hot, l.levels = make(map[string]bool), make(map[string]int)
	}
	if l.last = append(l.last, text); len(l.last) > lastLimit {
		l.last = l.last[1:]
	}
	if m := hotLine.FindStringSubmatch(text); m != nil {
		l.hot[strings.Trim(m[1], `"`)] = true
	}
	level := "none" // a Go panic, or something printed beside the log
	if m := levelWord.FindStringSubmatch(text); m != nil {
		level = m[1]
	}
	l.levels[level]++
	unexpected := level == "none" || level == "ERROR" && !expected.MatchString(text) || strings.Contains(text, "survived a bug")
	if unexpected && len(l.bad) < badLimit {
		l.bad = append(l.bad, text)
	}
}

// text returns the last lines.
func (l *watchLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.last, "\n")
}

// reported reports whether the key was said to be hot.
func (l *watchLog) reported(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hot[key]
}

// summary returns how many lines of each level there were, and the unexpected
// ones.
func (l *watchLog) summary() (levels map[string]int, bad []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.levels, l.bad
}
