package hotlist

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsniff/hotsniff/hotlist/redistest"
)

const (
	// ageTTL is the advised life of a copy: short, so that many lives pass.
	ageTTL = 200 * time.Millisecond
	// ageLasts is how long the test reads at least. It goes on until
	// something was tested: a slow machine needs longer for that.
	ageLasts = 2500 * time.Millisecond
)

// numbers is a writer of 1, 2, 3 ... to one key; when[n] is the time at which
// Redis had answered that n is written.
type numbers struct {
	begin time.Time
	when  [1 << 16]atomic.Int64
}

// write writes until ctx ends, for a stranger: nobody is told.
func (ns *numbers) write(ctx context.Context, set func(n int) error) error {
	for n := 1; n < len(ns.when) && ctx.Err() == nil; n++ {
		if err := set(n); err != nil {
			return err
		}
		ns.when[n].Store(int64(time.Since(ns.begin)))
		time.Sleep(500 * time.Microsecond)
	}
	return nil
}

// age returns for how long n had been replaced for certain at the time at.
func (ns *numbers) age(n int, at time.Duration) time.Duration {
	if n+1 < len(ns.when) {
		if w := time.Duration(ns.when[n+1].Load()); w != 0 && w < at {
			return at - w
		}
	}
	return 0
}

// most keeps the largest duration.
type most struct{ atomic.Int64 }

func (m *most) note(d time.Duration) {
	for old := m.Load(); int64(d) > old && !m.CompareAndSwap(old, int64(d)); old = m.Load() {
	}
}

// patient is a client that waits for a machine that is busy: a load that fails
// lets a copy live longer, by contract, which is not what is tested here.
func patient(t *testing.T, s *redistest.Server) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true, DialTimeout: patience,
		ReadTimeout: patience, WriteTimeout: patience, PoolTimeout: patience})
	t.Cleanup(func() { c.Close() })
	return c
}

// TestNoReadIsOlderThanItsTime: ten instances read a key that a stranger
// writes all the time, on a real server. No value is older than the longest
// life of a copy and the longest load.
//
// The bound is made of clocks only, so that no pause of the machine breaks it:
// the time of a read is taken before the read, the time of a write after Redis
// had answered it, and the longest load is what loads took in this very run.
func TestNoReadIsOlderThanItsTime(t *testing.T) {
	const instances = 10
	s := redistest.Start(t)
	s.Do("SET", "n", 0)
	l := listNow("node", 1, "n")
	l.Entries[0].TTLMs = ageTTL.Milliseconds()
	s.Do("SET", ListKeyPrefix+"node", encoded(t, l))
	s.Do("ZADD", NodesKey, time.Now().Add(time.Minute).UnixMilli(), "node")

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ns := &numbers{begin: time.Now()}
	writer := patient(t, s)
	var load, oldest most
	var reads, beyond atomic.Int64
	check := func(text string, at time.Duration) {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Errorf("read %q", text)
			return
		}
		reads.Add(1)
		oldest.note(ns.age(n, at))
	}
	var wg sync.WaitGroup
	var hooks []*Hook
	for range instances {
		plain, hooked := patient(t, s), patient(t, s)
		w := Watch(context.Background(), plain, WatchConfig{})
		t.Cleanup(w.Close)
		waitReady(t, w)
		get := func(ctx context.Context, key string) (string, error) {
			begin := time.Now()
			// Nobody's deadline ends it: see patient.
			v, err := plain.Get(context.WithoutCancel(ctx), key).Result()
			load.note(time.Since(begin))
			beyond.Add(1)
			return v, err
		}
		cache := NewCache(w, get, CacheConfig[string]{LoadTimeout: patience})
		t.Cleanup(cache.Close)
		hook := NewHook(w, HookConfig{})
		t.Cleanup(hook.Close)
		hooked.AddHook(hook)
		hooks = append(hooks, hook)
		wg.Go(func() {
			for ctx.Err() == nil {
				at := time.Since(ns.begin)
				v, err := cache.Get(context.Background(), "n")
				if err != nil {
					t.Errorf("Cache: %v", err)
					return
				}
				check(v, at)
				at = time.Since(ns.begin)
				v, err = hooked.Get(context.Background(), "n").Result()
				if err != nil {
					t.Errorf("Hook: %v", err)
					return
				}
				load.note(time.Since(ns.begin) - at) // not less than the load was, if there was one
				check(v, at)
				time.Sleep(200 * time.Microsecond)
			}
		})
	}
	wg.Go(func() {
		if err := ns.write(ctx, func(n int) error { return writer.Set(context.Background(), "n", n, 0).Err() }); err != nil {
			t.Errorf("writer: %v", err)
		}
	})
	atRedis := func() int64 {
		n := beyond.Load()
		for _, h := range hooks {
			n += int64(h.Stats().Misses)
		}
		return n
	}
	tested := func() bool { return oldest.Load() > 0 && reads.Load() > 4*atRedis() }
	time.Sleep(ageLasts)
	for !tested() && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	wg.Wait()
	bound := ageTTL*(100+ttlJitter*100)/100 + time.Duration(load.Load())
	t.Logf("%d reads, %d of them by Redis; the oldest was out of date for %v; the bound is %v, with a longest load of %v",
		reads.Load(), atRedis(), time.Duration(oldest.Load()), bound, time.Duration(load.Load()))
	if time.Duration(oldest.Load()) > bound {
		t.Errorf("a read was out of date for %v; at most %v is allowed", time.Duration(oldest.Load()), bound)
	}
	if !tested() {
		t.Errorf("of %d reads %d went to Redis: nothing was tested", reads.Load(), atRedis())
	}
}
