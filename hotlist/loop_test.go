package hotlist

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotsniff/hotsniff/hotlist/redistest"
)

// TestHotKeyStopsReachingRedis is the point of it all: ten instances read with
// one key at 26 %, and Redis, which counts for itself, sees nearly none of
// that key's reads once it is listed.
func TestHotKeyStopsReachingRedis(t *testing.T) {
	const instances, reads, ttl = 10, 1500, 2 * time.Second
	s := redistest.Start(t)
	ctx := context.Background()
	var ws []*Watcher
	var caches []*Cache[string]
	for range instances {
		c := s.Client()
		w := Watch(ctx, c, WatchConfig{})
		t.Cleanup(w.Close)
		cache := NewCache(w, func(ctx context.Context, key string) (string, error) { return c.Get(ctx, key).Result() }, CacheConfig[string]{TTL: ttl})
		t.Cleanup(cache.Close)
		ws, caches = append(ws, w), append(caches, cache)
		waitReady(t, w)
	}
	s.Do("SET", "hot", "v")
	for i := range 1000 {
		s.Do("SET", fmt.Sprint("cold:", i), "v")
	}
	run := func() (hot, hotAtRedis int) {
		before := commands(s, "get")
		var hots, colds atomic.Int64
		var wg sync.WaitGroup
		for i, c := range caches {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(uint64(i), 9))
				for range reads {
					key := "hot"
					if rnd.Float64() >= 0.26 {
						key = fmt.Sprint("cold:", rnd.IntN(1000))
						colds.Add(1)
					} else {
						hots.Add(1)
					}
					if v, err := c.Get(ctx, key); v != "v" || err != nil {
						t.Errorf("Get(%s) = %q, %v", key, v, err)
						return
					}
				}
			})
		}
		wg.Wait()
		return int(hots.Load()), commands(s, "get") - before - int(colds.Load())
	}
	if hot, at := run(); at != hot {
		t.Errorf("not listed: %d reads, of which %d reached Redis", hot, at)
	}
	s.Do("PUBLISH", DefaultChannel, encoded(t, listNow("n", 1, "hot")))
	for _, w := range ws {
		waitHot(t, w, "hot")
	}
	begin := time.Now()
	hot, at := run()
	// One load each, and one more whenever a copy passed half of its life.
	most := instances * (1 + int(time.Since(begin)/(ttl*85/100/2)+1))
	t.Logf("listed: %d reads, of which %d (%.2f %%) reached Redis", hot, at, 100*float64(at)/float64(hot))
	if at > most {
		t.Errorf("%d of %d reads reached Redis, at most %d were due", at, hot, most)
	}
	s.Do("PUBLISH", DefaultChannel, encoded(t, listNow("n", 2)))
	for _, w := range ws {
		waitHot(t, w, "")
	}
	if hot, at := run(); at != hot {
		t.Errorf("cooled: %d reads, of which %d reached Redis", hot, at)
	}
	for _, c := range caches {
		if n := c.Stats().Entries; n != 0 {
			t.Errorf("cooled, but %d copies are left", n)
		}
	}
}
