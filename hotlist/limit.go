package hotlist

import (
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// LimitConfig configures a Limit.
type LimitConfig struct {
	// PerSecond is how many accesses of one hot key this instance makes in a
	// second, at most; it must be positive. Burst is how many of them may
	// come at once; PerSecond, at least 1, when 0.
	PerSecond float64
	Burst     int
	// AllHot limits every listed key, not only those for which the list
	// advises it (one client that sends nearly all the traffic of a key).
	AllHot bool
}

// Limit is a token bucket for each hot key. Keys that are not listed pass.
// The bucket of a key is full when it enters the list and forgotten when it
// leaves. Safe for any number of goroutines.
type Limit struct {
	w      *Watcher
	cfg    LimitConfig
	remove func()

	buckets sync.Map // key -> *rate.Limiter; at most one for each listed key

	allowed, denied atomic.Uint64
}

// NewLimit returns a limit on the hot keys of w.
func NewLimit(w *Watcher, cfg LimitConfig) *Limit {
	if cfg.Burst <= 0 {
		cfg.Burst = max(int(cfg.PerSecond), 1)
	}
	l := &Limit{w: w, cfg: cfg}
	l.remove = w.listen(&listener{change: func(_, left []*Hot) {
		for _, h := range left {
			l.buckets.Delete(h.Key)
		}
	}})
	return l
}

// Allow reports whether an access of key may happen now, and takes a token if
// so.
func (l *Limit) Allow(key string) bool {
	b := l.bucket(key)
	if b == nil {
		return true
	}
	if b.Allow() {
		l.allowed.Add(1)
		return true
	}
	l.denied.Add(1)
	return false
}

// Wait waits until an access of key may happen. It fails when ctx ends, or
// would end, before that.
func (l *Limit) Wait(ctx context.Context, key string) error {
	b := l.bucket(key)
	if b == nil {
		return nil
	}
	if err := b.Wait(ctx); err != nil {
		l.denied.Add(1)
		return err
	}
	l.allowed.Add(1)
	return nil
}

func (l *Limit) bucket(key string) *rate.Limiter {
	h, ok := l.w.Lookup(key)
	if !ok || !l.cfg.AllHot && h.Action != ActionLimit {
		return nil
	}
	if b, ok := l.buckets.Load(key); ok {
		return b.(*rate.Limiter)
	}
	b, _ := l.buckets.LoadOrStore(key, rate.NewLimiter(rate.Limit(l.cfg.PerSecond), l.cfg.Burst))
	if now, ok := l.w.Lookup(key); !ok || now.gen != h.gen {
		l.buckets.Delete(key) // it left while we looked; the listener is through
	}
	return b.(*rate.Limiter)
}

// Stats returns how many accesses of limited keys were allowed and denied.
func (l *Limit) Stats() (allowed, denied uint64) { return l.allowed.Load(), l.denied.Load() }

// Close ends the limit's interest in the list. It may still be used, and then
// forgets no bucket any more.
func (l *Limit) Close() { l.remove() }
