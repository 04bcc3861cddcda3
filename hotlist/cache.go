package hotlist

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"
)

// Defaults of CacheConfig.
const (
	DefaultCacheEntries = 1000
	DefaultCacheBytes   = 64 << 20
	DefaultCacheTTL     = 2 * time.Second
	DefaultStaleFor     = 30 * time.Second
	DefaultLoadTimeout  = 5 * time.Second

	// ttlJitter keeps the copies of many instances, which learned of the
	// key in the same moment, from running out in the same moment: +-15 %.
	ttlJitter = 0.15

	// retryPause is how long a key is not loaded again after loading failed
	// while there is still a copy to serve.
	retryPause = time.Second
)

// CacheConfig configures a Cache. Zero fields mean the defaults.
type CacheConfig[V any] struct {
	MaxEntries int
	MaxBytes   int // as Size counts
	// Size returns the bytes of a value. Nil: strings and byte slices by
	// their length, all else as MaxBytes / MaxEntries.
	Size func(V) int
	// TTL is the life of a copy. 0: what the list advises for each key.
	TTL time.Duration
	// StaleFor is for how long after its TTL a copy is still served when
	// loading fails. Negative: never.
	StaleFor time.Duration
	// LoadTimeout bounds a load. It does not end with the caller who
	// happened to start it, because others wait for it too.
	LoadTimeout time.Duration
}

// Cache serves hot keys from memory and passes all others through. A copy
// lives for its TTL (+-15 %); it is renewed in the background from half of
// that on, so that a key that is read all the time never makes anybody wait;
// it is dropped when the key leaves the list or Drop says so. While loading
// fails, the last copy is served for StaleFor longer. A read is therefore never
// older than 1.15 TTL plus the time of one load, unless loading fails.
//
// Callers share values: do not change what Get returns.
type Cache[V any] struct {
	w     *Watcher
	load  func(ctx context.Context, key string) (V, error)
	cfg   CacheConfig[V]
	start time.Time // times of items count from here, on the monotonic clock

	items  *otter.Cache[string, *item[V]]
	flight singleflight.Group
	remove func()

	ctx    context.Context // of loads; ends with Close
	cancel context.CancelFunc
	mu     sync.Mutex // guards closed and wg.Add against wg.Wait
	closed bool
	wg     sync.WaitGroup

	hits, misses, stale, loads, failed, cold atomic.Uint64
}

// item is one copy; all but its last two fields is immutable.
type item[V any] struct {
	v          V
	size       uint32
	gen        uint64        // of the key when the load began
	refresh    time.Duration // renew from here on
	fresh      time.Duration // do not serve from here on, unless loading fails
	dead       time.Duration // not even then
	refreshing atomic.Bool
	retry      atomic.Int64 // ns: loading failed, not again before then
}

// CacheStats is a copy of a Cache's counters.
type CacheStats struct {
	Hits    uint64 // served from memory
	Misses  uint64 // hot, but had to wait for a load, own or another's
	Stale   uint64 // served past the TTL because loading failed
	Loads   uint64 // calls of load for hot keys
	Failed  uint64 // of which failed
	Cold    uint64 // keys that are not on the list, passed through
	Entries int
	Bytes   uint64
}

// NewCache returns a cache in front of load for the hot keys of w. load is
// what the application did before: it reads Redis, or whatever is behind it.
func NewCache[V any](w *Watcher, load func(ctx context.Context, key string) (V, error), cfg CacheConfig[V]) *Cache[V] {
	if cfg.MaxEntries <= 0 {
		cfg.MaxEntries = DefaultCacheEntries
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = DefaultCacheBytes
	}
	if cfg.StaleFor == 0 {
		cfg.StaleFor = DefaultStaleFor
	}
	cfg.StaleFor = max(cfg.StaleFor, 0)
	if cfg.LoadTimeout <= 0 {
		cfg.LoadTimeout = DefaultLoadTimeout
	}
	c := &Cache[V]{w: w, load: load, cfg: cfg, start: time.Now()}
	c.items = otter.Must(&otter.Options[string, *item[V]]{
		MaximumWeight: uint64(cfg.MaxBytes),
		Weigher:       func(_ string, it *item[V]) uint32 { return it.size },
	})
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.remove = w.listen(&listener{change: func(_, left []*Hot) {
		for _, h := range left {
			c.items.Invalidate(h.Key)
		}
	}})
	return c
}

// Get returns the value of key. The context bounds the wait; a load that
// others wait for too goes on without it.
func (c *Cache[V]) Get(ctx context.Context, key string) (V, error) {
	h, ok := c.w.Lookup(key)
	if !ok || !h.Cacheable() {
		c.cold.Add(1)
		return c.load(ctx, key)
	}
	it, ok := c.items.GetIfPresent(key)
	if ok && it.gen != h.gen.Load() {
		it = nil
	}
	if it != nil {
		now := time.Since(c.start)
		paused := now < time.Duration(it.retry.Load())
		switch {
		case now < it.fresh:
			if now >= it.refresh && !paused && it.refreshing.CompareAndSwap(false, true) {
				c.begin(h) // nobody waits for it
			}
			c.hits.Add(1)
			return it.v, nil
		case now < it.dead && paused: // do not make everybody wait for what just failed
			c.stale.Add(1)
			return it.v, nil
		}
	}
	c.misses.Add(1)
	select {
	case r := <-c.begin(h):
		if r.Err == nil {
			return r.Val.(*item[V]).v, nil
		}
		if it != nil && time.Since(c.start) < it.dead && it.gen == h.gen.Load() {
			c.stale.Add(1)
			return it.v, nil
		}
		var none V
		return none, r.Err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
}

// begin starts a load of the key, or joins the one of the same generation that
// is under way: a load that began before the key was dropped does not count.
func (c *Cache[V]) begin(h *Hot) <-chan singleflight.Result {
	gen := h.gen.Load()
	return c.flight.DoChan(h.Key+"\x00"+strconv.FormatUint(gen, 36), func() (any, error) {
		if !c.enter() {
			return nil, context.Canceled
		}
		defer c.wg.Done()
		ctx, cancel := context.WithTimeout(c.ctx, c.cfg.LoadTimeout)
		defer cancel()
		begun := time.Since(c.start) // the value is as old as that
		c.loads.Add(1)
		v, err := c.load(ctx, h.Key)
		if err != nil {
			c.failed.Add(1)
			if old, ok := c.items.GetIfPresent(h.Key); ok {
				old.retry.Store(int64(time.Since(c.start) + retryPause))
				old.refreshing.Store(false)
			}
			return nil, err
		}
		it := c.newItem(v, h, gen, begun)
		if gen != h.gen.Load() {
			return it, nil // outdated already: only for those who asked before
		}
		// A key that left meanwhile must not come back: the list is newer
		// than the listener that emptied us.
		c.items.Set(h.Key, it)
		if now, ok := c.w.Lookup(h.Key); !ok || now.gen != h.gen {
			c.items.Invalidate(h.Key)
		}
		return it, nil
	})
}

func (c *Cache[V]) newItem(v V, h *Hot, gen uint64, begun time.Duration) *item[V] {
	ttl := c.cfg.TTL
	if ttl <= 0 {
		ttl = h.TTL
	}
	if ttl <= 0 {
		ttl = DefaultCacheTTL
	}
	ttl = time.Duration(float64(ttl) * (1 - ttlJitter + 2*ttlJitter*rand.Float64()))
	return &item[V]{v: v, size: c.size(v), gen: gen, refresh: begun + ttl/2, fresh: begun + ttl, dead: begun + ttl + c.cfg.StaleFor}
}

// size is at least an equal part of all bytes, so that bytes bound entries too.
func (c *Cache[V]) size(v V) uint32 {
	part := max(c.cfg.MaxBytes/c.cfg.MaxEntries, 1)
	n := part
	if c.cfg.Size != nil {
		n = c.cfg.Size(v)
	} else {
		switch x := any(v).(type) {
		case string:
			n = len(x)
		case []byte:
			n = len(x)
		}
	}
	return uint32(min(max(n, part), 1<<31))
}

func (c *Cache[V]) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.wg.Add(1)
	return true
}

// Stats returns the counters.
func (c *Cache[V]) Stats() CacheStats {
	return CacheStats{
		Hits: c.hits.Load(), Misses: c.misses.Load(), Stale: c.stale.Load(), Loads: c.loads.Load(),
		Failed: c.failed.Load(), Cold: c.cold.Load(), Entries: c.items.EstimatedSize(), Bytes: c.items.WeightedSize(),
	}
}

// Close ends the loads that are under way and waits for them. Hot keys are
// then no longer loaded (context.Canceled). The watcher stays the caller's.
func (c *Cache[V]) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.remove()
	c.cancel()
	c.wg.Wait()
	c.items.InvalidateAll()
	c.items.StopAllGoroutines()
}
