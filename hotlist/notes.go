package hotlist

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// notesGap gathers what is written in a few milliseconds into one note.
	notesGap = 5 * time.Millisecond
	// notesTimeout bounds sending one; a late note is worth nothing, the
	// copies it speaks of end by themselves.
	notesTimeout = time.Second
)

// notes tells other instances which hot keys were written, without making the
// writer wait.
type notes struct {
	w      *Watcher
	client redis.UniversalClient

	mu   sync.Mutex
	keys map[string]struct{}
	all  bool

	wake chan struct{} // one slot
	stop chan struct{}
	once sync.Once
	done chan struct{}
}

func newNotes(w *Watcher, client redis.UniversalClient) *notes {
	n := &notes{w: w, client: client, keys: make(map[string]struct{}), wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go n.run()
	return n
}

func (n *notes) add(keys []string) {
	n.mu.Lock()
	for _, k := range keys {
		if k == everything || len(n.keys) >= maxDropKeys {
			n.all = true
			break
		}
		n.keys[k] = struct{}{}
	}
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func (n *notes) run() {
	defer close(n.done)
	for {
		select {
		case <-n.wake:
			select {
			case <-time.After(notesGap):
			case <-n.stop:
			}
			n.send()
		case <-n.stop:
			n.send()
			return
		}
	}
}

func (n *notes) send() {
	n.mu.Lock()
	keys := make([]string, 0, len(n.keys))
	for k := range n.keys {
		keys = append(keys, k)
	}
	all := n.all
	clear(n.keys)
	n.all = false
	n.mu.Unlock()
	if len(keys) == 0 && !all {
		return
	}
	note, err := encodeDrop(n.w.id, keys, all)
	if len(note) > maxDropBytes {
		note, err = encodeDrop(n.w.id, nil, true)
	}
	if err != nil {
		return // strings always encode
	}
	ctx, cancel := context.WithTimeout(context.Background(), notesTimeout)
	defer cancel()
	channel := n.w.cfg.Channel
	if channel == "" {
		channel = DefaultChannel
	}
	if n.w.cfg.Sharded {
		err = n.client.SPublish(ctx, channel, note).Err()
	} else {
		err = n.client.Publish(ctx, channel, note).Err()
	}
	if err != nil {
		n.w.notesFailed.Add(1)
	}
}

func (n *notes) close() {
	n.once.Do(func() { close(n.stop) })
	<-n.done
}
