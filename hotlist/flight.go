package hotlist

import "sync"

// flight lets one of many callers ask and the others wait for its answer. It
// differs from singleflight in that who asks does so on its own goroutine,
// with its own command, and who waits may leave when its context ends.
type flight struct {
	mu    sync.Mutex
	calls map[string]*call
}

type call struct {
	name string
	done chan struct{}
	r    *reply // valid when done is closed; nil: there is no answer to share
}

// join returns the call under way of that name, or a new one, which the caller
// leads: it sets r and calls leave.
func (f *flight) join(name string) (c *call, led bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.calls[name]; ok {
		return c, false
	}
	if f.calls == nil {
		f.calls = make(map[string]*call)
	}
	c = &call{name: name, done: make(chan struct{})}
	f.calls[name] = c
	return c, true
}

// leave ends the call, also when its leader panics.
func (f *flight) leave(c *call) {
	f.mu.Lock()
	delete(f.calls, c.name)
	f.mu.Unlock()
	close(c.done)
}
