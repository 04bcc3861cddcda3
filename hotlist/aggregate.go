package hotlist

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Defaults of AggregateConfig.
const (
	DefaultFlushInterval = 100 * time.Millisecond
	DefaultFlushTimeout  = time.Second
	// DefaultMaxAge bounds what a crash can lose while flushing fails.
	DefaultMaxAge = 2 * time.Second
)

// AggregateConfig configures an Aggregate. Zero fields mean the defaults.
type AggregateConfig struct {
	Interval time.Duration // between two flushes
	Timeout  time.Duration // of one write
	// MaxAge is how old a sum may get that could not be flushed. While there
	// is an older one for a key, Add writes through instead of adding to it.
	MaxAge time.Duration
	// AllHot sums every listed key, not only those that the list advises to.
	AllHot bool
}

// Aggregate sums increments of hot counters locally and writes the sum a few
// times a second: 1,000 increments of a key in an interval become one command.
// Increments of other keys are written at once.
//
// What is promised: nothing is lost while the process lives; a sum whose write
// failed is kept and written with the next flush, and Close writes what is
// left or says what it could not write. A write that timed out may have
// happened nevertheless and is then counted twice, as with any retry of INCRBY.
// A crash loses the increments of the last Interval, and while Redis does
// not answer, those of the last MaxAge at most. Readers see a counter late by
// Interval.
type Aggregate struct {
	w     *Watcher
	write func(ctx context.Context, key string, by int64) error
	cfg   AggregateConfig

	mu     sync.Mutex
	sums   map[string]*sum
	closed bool

	flushing sync.Mutex // one flush at a time
	stop     chan struct{}
	done     chan struct{}
	stats    AggregateStats // under mu
}

type sum struct {
	by    int64
	since time.Time // of the oldest increment in it
}

// AggregateStats is a copy of an Aggregate's counters.
type AggregateStats struct {
	Added   uint64 // increments that were summed
	Direct  uint64 // increments that were written at once
	Writes  uint64 // of sums
	Failed  uint64 // of which failed
	Pending int    // keys with a sum that is not written
}

// ErrClosed is what Add returns for hot keys after Close.
var ErrClosed = errors.New("hotlist: closed")

// NewAggregate returns an aggregate in front of write, which adds by to the
// counter of key, usually with rdb.IncrBy(ctx, key, by).Err().
func NewAggregate(w *Watcher, write func(ctx context.Context, key string, by int64) error, cfg AggregateConfig) *Aggregate {
	if cfg.Interval <= 0 {
		cfg.Interval = DefaultFlushInterval
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultFlushTimeout
	}
	if cfg.MaxAge <= 0 {
		cfg.MaxAge = DefaultMaxAge
	}
	a := &Aggregate{w: w, write: write, cfg: cfg, sums: make(map[string]*sum), stop: make(chan struct{}), done: make(chan struct{})}
	go a.run()
	return a
}

// Add adds by to the counter of key: to the local sum when the key is hot,
// else, or when the local sum cannot be written, in Redis before it returns.
func (a *Aggregate) Add(ctx context.Context, key string, by int64) error {
	h, ok := a.w.Lookup(key)
	if !ok || !a.cfg.AllHot && h.Action != ActionAggregate {
		a.mu.Lock()
		a.stats.Direct++
		a.mu.Unlock()
		return a.write(ctx, key, by)
	}
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return ErrClosed
	}
	s := a.sums[key]
	now := time.Now()
	switch {
	case s == nil:
		a.sums[key] = &sum{by: by, since: now}
	case now.Sub(s.since) > a.cfg.MaxAge || overflows(s.by, by):
		a.stats.Direct++
		a.mu.Unlock()
		return a.write(ctx, key, by)
	default:
		s.by += by
	}
	a.stats.Added++
	a.mu.Unlock()
	return nil
}

func overflows(a, b int64) bool { return b > 0 && a+b < a || b < 0 && a+b > a }

func (a *Aggregate) run() {
	defer close(a.done)
	tick := time.NewTicker(a.cfg.Interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = a.Flush(context.Background()) // kept and counted
		case <-a.stop:
			return
		}
	}
}

// Flush writes all sums now. Those that fail are kept; the errors are joined.
func (a *Aggregate) Flush(ctx context.Context) error {
	a.flushing.Lock()
	defer a.flushing.Unlock()
	var errs []error
	for _, p := range a.due() {
		wctx, cancel := context.WithTimeout(ctx, a.cfg.Timeout)
		err := a.write(wctx, p.key, p.by)
		cancel()
		a.written(p, err)
		if err != nil {
			errs = append(errs, fmt.Errorf("add %d to %q: %w", p.by, p.key, err))
		}
	}
	return errors.Join(errs...)
}

// part is what one write of a flush takes from a sum. Until it is written the
// sum stays where it is, so that Add sees how old it is.
type part struct {
	key string
	by  int64
	at  time.Time
}

// due returns what is to be written.
func (a *Aggregate) due() []part {
	a.mu.Lock()
	defer a.mu.Unlock()
	parts := make([]part, 0, len(a.sums))
	now := time.Now()
	for key, s := range a.sums {
		if s.by == 0 {
			delete(a.sums, key)
			continue
		}
		parts = append(parts, part{key, s.by, now})
	}
	return parts
}

// written takes a part that was written off its sum; what came meanwhile stays.
func (a *Aggregate) written(p part, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stats.Writes++
	if err != nil {
		a.stats.Failed++
		return
	}
	s := a.sums[p.key]
	if s.by -= p.by; s.by == 0 {
		delete(a.sums, p.key)
		return
	}
	s.since = p.at
}

// Close ends the flushing and writes what is left. It returns what could not
// be written, which is then lost. Add fails for hot keys from then on.
func (a *Aggregate) Close(ctx context.Context) error {
	a.mu.Lock()
	again := a.closed
	a.closed = true
	a.mu.Unlock()
	if !again {
		close(a.stop)
	}
	<-a.done
	return a.Flush(ctx)
}

// Stats returns the counters.
func (a *Aggregate) Stats() AggregateStats {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.stats
	s.Pending = len(a.sums)
	return s
}
