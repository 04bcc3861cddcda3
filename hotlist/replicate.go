package hotlist

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// minCopyTTL: shorter copies would be refilled more than they are read.
	minCopyTTL = 100 * time.Millisecond
	// copySpread staggers the ends of copies, so that not all are refilled
	// at once: a copy lives for TTL to TTL and a half.
	copySpread = 0.5
	// removeTimeout bounds removing the copies of a key that cooled; they
	// end by themselves anyway.
	removeTimeout = time.Second
)

// ReplicateConfig configures a Replicate.
type ReplicateConfig struct {
	// Copies of each key, at most MaxCopies. 0: as the list advises.
	Copies int
	// TTL is the life of a copy, to which up to a half is added at random.
	// 0: what the list advises for local copies.
	TTL time.Duration
	// AllHot replicates every listed key, not only those that the list
	// advises to.
	AllHot bool
}

// Replicate spreads the reads of hot string keys over copies, whose names lie
// on different slots of a cluster and so on different nodes. Where an
// application reads and writes such keys it calls Get, Set and Del.
//
// A read takes a copy at random; where that is missing, it reads the key itself
// and puts the copy there. A write goes to the key, then to all copies. When
// the key cools, the copies are still used for the advised TTL, because other
// instances may not know yet, and then removed.
//
// What a reader may see: a copy is outdated for at most its life (1.5 TTL), when
// the key was written without Replicate, by an instance that does not know
// yet that it is hot, by two writers at once, or while it expired. Readers of
// the same value from different copies may see it change at different moments.
type Replicate struct {
	w      *Watcher
	client redis.UniversalClient
	cfg    ReplicateConfig
	remove func()
	flight flight

	mu     sync.RWMutex
	sets   map[string]*copySet
	closed bool
	wg     sync.WaitGroup

	hits, refills, main, failed atomic.Uint64
}

// copySet is the copies of one key; immutable but for leaving.
type copySet struct {
	names   []string
	ttl     time.Duration
	leaving *time.Timer // runs when the key has left the list; under mu
}

// ReplicateStats is a copy of a Replicate's counters.
type ReplicateStats struct {
	Hits    uint64 // reads that a copy served
	Refills uint64 // copies put in place after a miss
	Main    uint64 // reads of keys that are not replicated, and of the key itself
	Failed  uint64 // writes of copies that failed; they may be outdated for their life
}

// NewReplicate returns a replicator for the hot keys of w on client.
func NewReplicate(w *Watcher, client redis.UniversalClient, cfg ReplicateConfig) *Replicate {
	r := &Replicate{w: w, client: client, cfg: cfg, sets: make(map[string]*copySet)}
	r.remove = w.listen(&listener{change: func(_, left []*Hot) {
		for _, h := range left {
			r.leave(h)
		}
	}})
	return r
}

// find returns the copies of key, nil when it has none.
func (r *Replicate) find(key string) *copySet {
	h, hot := r.w.Lookup(key)
	hot = hot && (r.cfg.AllHot || h.Action == ActionReplicate) && !strings.Contains(key, copyMark)
	n := 0
	if hot {
		if n = h.Copies; r.cfg.Copies > 0 {
			n = r.cfg.Copies
		}
		n = min(max(n, 2), MaxCopies)
	}
	r.mu.RLock()
	set := r.sets[key]
	r.mu.RUnlock()
	if !hot || set != nil && len(set.names) == n && set.leaving == nil {
		return set // also one that is on its way out
	}
	return r.enter(key, h, n)
}

// enter makes the copies of a key that became hot, that is hot again, or whose
// number changed. Copies beyond the new number end by themselves.
func (r *Replicate) enter(key string, h *Hot, n int) *copySet {
	ttl := r.cfg.TTL
	if ttl <= 0 {
		ttl = h.TTL
	}
	set := &copySet{names: copyNames(key, n), ttl: max(ttl, minCopyTTL)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	if old := r.sets[key]; old != nil && old.leaving != nil && old.leaving.Stop() {
		r.wg.Done()
	}
	r.sets[key] = set
	if now, ok := r.w.Lookup(key); !ok || now.gen != h.gen {
		r.startLeaving(key, set) // it left while we looked; the listener is through
	}
	return set
}

func (r *Replicate) leave(h *Hot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if set := r.sets[h.Key]; set != nil && set.leaving == nil && !r.closed {
		// A copy of the set, since readers hold the old one without a lock.
		set = &copySet{names: set.names, ttl: set.ttl}
		r.sets[h.Key] = set
		r.startLeaving(h.Key, set)
	}
}

// startLeaving removes the copies after their ttl; under mu.
func (r *Replicate) startLeaving(key string, set *copySet) {
	r.wg.Add(1)
	set.leaving = time.AfterFunc(set.ttl, func() {
		defer r.wg.Done()
		r.mu.Lock()
		if r.sets[key] == set {
			delete(r.sets, key)
		}
		r.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
		defer cancel()
		r.unlink(ctx, set)
	})
}

// Get returns the value of key, from a copy if it has some; redis.Nil when there
// is none.
func (r *Replicate) Get(ctx context.Context, key string) (string, error) {
	set := r.find(key)
	if set == nil {
		r.main.Add(1)
		return r.client.Get(ctx, key).Result()
	}
	name := set.names[rand.IntN(len(set.names))]
	v, err := r.client.Get(ctx, name).Result()
	if err == nil {
		r.hits.Add(1)
		return v, nil
	}
	if !errors.Is(err, redis.Nil) { // the node of the copy is down: the key's may be up
		r.main.Add(1)
		return r.client.Get(ctx, key).Result()
	}
	c, led := r.flight.join(name)
	if led {
		defer r.flight.leave(c)
		v, err := r.refill(ctx, key, name, set.ttl)
		if err == nil || errors.Is(err, redis.Nil) {
			c.r = &reply{value: v, null: err != nil}
		}
		return v, err
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if c.r != nil {
		return c.r.value.(string), c.r.err()
	}
	r.main.Add(1)
	return r.client.Get(ctx, key).Result() // the one we waited for failed, perhaps because its caller left
}

// refill reads the key and puts the copy in place, unless a writer did so
// meanwhile. The copy does not outlive the key.
func (r *Replicate) refill(ctx context.Context, key, name string, ttl time.Duration) (string, error) {
	r.main.Add(1)
	pipe := r.client.Pipeline()
	get, left := pipe.Get(ctx, key), pipe.PTTL(ctx, key)
	if _, err := pipe.Exec(ctx); err != nil && get.Err() != nil {
		return "", get.Err()
	}
	ttl = spread(ttl)
	if d := left.Val(); d > 0 {
		ttl = min(ttl, d)
	}
	if err := r.client.SetNX(ctx, name, get.Val(), max(ttl, time.Millisecond)).Err(); err != nil {
		r.failed.Add(1)
	} else {
		r.refills.Add(1)
	}
	return get.Val(), nil
}

func spread(ttl time.Duration) time.Duration {
	return ttl + time.Duration(copySpread*rand.Float64()*float64(ttl))
}

// Set writes key, with ttl as for redis SET (0: none), and then its copies. The
// error is that of the key; copies that could not be written are counted.
func (r *Replicate) Set(ctx context.Context, key string, value any, ttl time.Duration) error {
	if err := r.client.Set(ctx, key, value, ttl).Err(); err != nil {
		return err
	}
	set := r.find(key)
	if set == nil {
		return nil
	}
	pipe := r.client.Pipeline()
	for _, name := range set.names {
		life := spread(set.ttl)
		if ttl > 0 {
			life = min(life, ttl)
		}
		pipe.Set(ctx, name, value, life)
	}
	cmds, _ := pipe.Exec(ctx)
	r.countFailed(cmds)
	return nil
}

// Del deletes key and its copies and reports whether there was one.
func (r *Replicate) Del(ctx context.Context, key string) (bool, error) {
	n, err := r.client.Del(ctx, key).Result()
	if err != nil {
		return false, err
	}
	if set := r.find(key); set != nil {
		r.unlink(ctx, set)
	}
	return n > 0, nil
}

func (r *Replicate) unlink(ctx context.Context, set *copySet) {
	pipe := r.client.Pipeline() // one by one: they lie on different slots
	for _, name := range set.names {
		pipe.Unlink(ctx, name)
	}
	cmds, _ := pipe.Exec(ctx)
	r.countFailed(cmds)
}

func (r *Replicate) countFailed(cmds []redis.Cmder) {
	for _, c := range cmds {
		if c.Err() != nil {
			r.failed.Add(1)
		}
	}
}

// Stats returns the counters.
func (r *Replicate) Stats() ReplicateStats {
	return ReplicateStats{Hits: r.hits.Load(), Refills: r.refills.Load(), Main: r.main.Load(), Failed: r.failed.Load()}
}

// Close ends the replicator's interest in the list and waits for removals under
// way; those that wait for their time are given up, the copies end by
// themselves. Get, Set and Del then work on the keys alone.
func (r *Replicate) Close() {
	r.remove()
	r.mu.Lock()
	r.closed = true
	for _, set := range r.sets {
		if set.leaving != nil && set.leaving.Stop() {
			r.wg.Done()
		}
	}
	clear(r.sets)
	r.mu.Unlock()
	r.wg.Wait()
}
