package main

import (
	"context"
	"net/http"
	"sync/atomic"
)

// liveHandler is a handler that a reload replaces. Requests that run for ever,
// the streams of the page, end with the handler that serves them, and their
// browsers come back to the new one.
type liveHandler struct{ now atomic.Pointer[generation] }

type generation struct {
	http.Handler
	ctx context.Context
	end context.CancelFunc
}

// set replaces the handler. Any goroutine.
func (l *liveHandler) set(h http.Handler) {
	g := &generation{Handler: h}
	g.ctx, g.end = context.WithCancel(context.Background())
	if old := l.now.Swap(g); old != nil {
		old.end()
	}
}

// ServeHTTP implements http.Handler.
func (l *liveHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g := l.now.Load()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(g.ctx, cancel)()
	g.ServeHTTP(w, r.WithContext(ctx))
}
