package hotlist

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fakeWatcher is a watcher that is told its lists by the test.
type fakeWatcher struct {
	*Watcher
	m   *merger
	s   Status
	seq uint64
}

func newFake(entries ...Entry) *fakeWatcher {
	f := &fakeWatcher{Watcher: &Watcher{id: "me"}, m: newMerger()}
	f.view.Store(&view{})
	f.status.Store(&Status{})
	f.set(entries...)
	return f
}

// set makes the list consist of these entries.
func (f *fakeWatcher) set(entries ...Entry) {
	f.seq++
	f.m.offer(&List{Node: "n", EpochMs: 1, Seq: f.seq, AtMs: 1, TTLMs: MaxTTLMs, AccessesPerSecond: 1, Entries: entries}, 1, false, time.Now())
	f.publish(f.m, &f.s)
}

func hotKey(key string) Entry { return Entry{Key: key, Action: ActionLocalize, TTLMs: 2000} }

// source is what is behind a cache: a number that grows with each load.
type source struct {
	loads atomic.Int64
	fail  atomic.Bool
	delay time.Duration
}

var errSource = errors.New("source is down")

func (s *source) load(ctx context.Context, key string) (string, error) {
	n := s.loads.Add(1)
	if s.delay > 0 {
		select {
		case <-time.After(s.delay):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	if s.fail.Load() {
		return "", errSource
	}
	return fmt.Sprint(key, "#", n), nil
}

// cacheTest runs f on a clock of its own.
func cacheTest(t *testing.T, delay time.Duration, f func(t *testing.T, w *fakeWatcher, c *Cache[string], s *source)) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{delay: delay}
		w := newFake(hotKey("hot"), Entry{Key: "counter", Action: ActionAggregate})
		c := NewCache(w.Watcher, s.load, CacheConfig[string]{})
		defer c.Close()
		f(t, w, c, s)
	})
}

func get(t *testing.T, c *Cache[string], key, want string) {
	t.Helper()
	if got, err := c.Get(context.Background(), key); err != nil || got != want {
		t.Errorf("Get(%s) = %q, %v; want %q", key, got, err, want)
	}
}

func TestCacheServesHotKeysOnly(t *testing.T) {
	cacheTest(t, 0, func(t *testing.T, w *fakeWatcher, c *Cache[string], s *source) {
		get(t, c, "hot", "hot#1")
		get(t, c, "hot", "hot#1")
		get(t, c, "cold", "cold#2")
		get(t, c, "cold", "cold#3")
		get(t, c, "counter", "counter#4") // advised to aggregate, not to cache
		get(t, c, "counter", "counter#5")
		if st := c.Stats(); st.Hits != 1 || st.Misses != 1 || st.Loads != 1 || st.Cold != 4 || st.Entries != 1 {
			t.Errorf("stats %+v", st)
		}
	})
}

func TestCacheIsNeverOlderThanPromised(t *testing.T) {
	cacheTest(t, 0, func(t *testing.T, w *fakeWatcher, c *Cache[string], s *source) {
		get(t, c, "hot", "hot#1")
		time.Sleep(2400 * time.Millisecond) // 2 s and 15 %, nobody read meanwhile
		get(t, c, "hot", "hot#2")
	})
}

func TestCacheRenewsAheadWithoutMakingAnybodyWait(t *testing.T) {
	cacheTest(t, 100*time.Millisecond, func(t *testing.T, w *fakeWatcher, c *Cache[string], s *source) {
		get(t, c, "hot", "hot#1")
		misses := c.Stats().Misses
		for range 1000 { // ten seconds of steady reading
			begin := time.Now()
			if _, err := c.Get(context.Background(), "hot"); err != nil {
				t.Fatal(err)
			}
			if d := time.Since(begin); d > 0 { // the clock stands still unless somebody waits
				t.Fatalf("waited %v", d)
			}
			time.Sleep(10 * time.Millisecond)
		}
		st := c.Stats()
		if st.Misses != misses || st.Loads < 6 || st.Loads > 14 {
			t.Errorf("stats %+v", st)
		}
	})
}

func TestTenThousandMissesMakeOneLoad(t *testing.T) {
	cacheTest(t, 50*time.Millisecond, func(t *testing.T, w *fakeWatcher, c *Cache[string], s *source) {
		var wg sync.WaitGroup
		for range 10_000 {
			wg.Go(func() { get(t, c, "hot", "hot#1") })
		}
		wg.Wait()
		if n := s.loads.Load(); n != 1 {
			t.Errorf("%d loads", n)
		}
	})
}

func TestCallerWhoLeavesDoesNotEndTheLoadOfOthers(t *testing.T) {
	cacheTest(t, time.Second, func(t *testing.T, w *fakeWatcher, c *Cache[string], s *source) {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		done := make(chan error, 1)
		go func() {
			_, err := c.Get(ctx, "hot")
			done <- err
		}()
		get(t, c, "hot", "hot#1")
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the one who left got %v", err)
		}
	})
}

func TestDropIsImmediateAndBeatsALoadUnderWay(t *testing.T) {
	cacheTest(t, 300*time.Millisecond, func(t *testing.T, w *fakeWatcher, c *Cache[string], s *source) {
		get(t, c, "hot", "hot#1")
		w.Drop("hot")
		go c.Get(context.Background(), "hot") // load 2 begins ...
		synctest.Wait()
		w.Drop("hot")                      // ... the key is written ...
		get(t, c, "hot", "hot#3")          // ... so load 2 must not count for anybody who asks now
		time.Sleep(300 * time.Millisecond) // load 2 is long done
		get(t, c, "hot", "hot#3")          // and did not replace the newer one for good
		w.Drop("cold")                     // no matter
		if w.drop(`{"schema":"x"}`) {      // not a note
			t.Error("took a foreign message for a note")
		}
		w.drop(`{"schema":"hotsniff.drop/v1","from":"me","keys":[{"key":"hot"}]}`) // our own
		get(t, c, "hot", "hot#3")
		w.drop(`{"schema":"hotsniff.drop/v1","from":"other","keys":[{"key":"hot"}]}`)
		get(t, c, "hot", "hot#4")
		w.drop(`{"schema":"hotsniff.drop/v1","from":"other","all":true}`)
		get(t, c, "hot", "hot#5")
	})
}

func TestKeyThatLeavesTheListIsForgotten(t *testing.T) {
	cacheTest(t, 0, func(t *testing.T, w *fakeWatcher, c *Cache[string], s *source) {
		get(t, c, "hot", "hot#1")
		w.set(hotKey("hot"), hotKey("other")) // another list, the key stays
		get(t, c, "hot", "hot#1")
		w.set(hotKey("other"))
		if n := c.Stats().Entries; n != 0 {
			t.Errorf("%d entries", n)
		}
		get(t, c, "hot", "hot#2")
		w.set(hotKey("hot"))
		get(t, c, "hot", "hot#3")
	})
}

func TestLoadThatEndsAfterTheKeyLeftLeavesNothing(t *testing.T) {
	cacheTest(t, time.Second, func(t *testing.T, w *fakeWatcher, c *Cache[string], s *source) {
		go c.Get(context.Background(), "hot")
		synctest.Wait()
		w.set()
		time.Sleep(2 * time.Second)
		if n := c.Stats().Entries; n != 0 {
			t.Errorf("%d entries", n)
		}
	})
}

func TestStaleIfLoadingFails(t *testing.T) {
	cacheTest(t, 0, func(t *testing.T, w *fakeWatcher, c *Cache[string], s *source) {
		get(t, c, "hot", "hot#1")
		s.fail.Store(true)
		for range 25 { // 25 s after the end of its life at most
			time.Sleep(time.Second)
			for range 100 {
				get(t, c, "hot", "hot#1")
			}
		}
		if n := s.loads.Load(); n > 30 {
			t.Errorf("%d loads against a source that is down for 25 s", n)
		}
		time.Sleep(10 * time.Second)
		if v, err := c.Get(context.Background(), "hot"); !errors.Is(err, errSource) {
			t.Errorf("after 35 s: %q, %v", v, err)
		}
		s.fail.Store(false)
		time.Sleep(2 * time.Second)
		if _, err := c.Get(context.Background(), "hot"); err != nil {
			t.Errorf("after the recovery: %v", err)
		}
	})
}

func TestStaleCopyIsNotServedAfterADrop(t *testing.T) {
	cacheTest(t, 0, func(t *testing.T, w *fakeWatcher, c *Cache[string], s *source) {
		get(t, c, "hot", "hot#1")
		s.fail.Store(true)
		w.Drop("hot")
		if v, err := c.Get(context.Background(), "hot"); err == nil {
			t.Errorf("served %q although it is known to be outdated", v)
		}
	})
}

func TestCacheIsBounded(t *testing.T) {
	var all []Entry
	for i := range 500 {
		all = append(all, hotKey(fmt.Sprint("k", i)))
	}
	w := newFake(all...)
	for _, tt := range []struct {
		name string
		cfg  CacheConfig[string]
	}{
		{"entries", CacheConfig[string]{MaxEntries: 20}},
		{"bytes", CacheConfig[string]{MaxBytes: 2000, Size: func(string) int { return 100 }}},
	} {
		c := NewCache(w.Watcher, (&source{}).load, tt.cfg)
		for _, e := range all {
			if _, err := c.Get(context.Background(), e.Key); err != nil {
				t.Fatal(err)
			}
		}
		c.items.CleanUp()
		if n := c.Stats().Entries; n == 0 || n > 20 {
			t.Errorf("%s: %d entries", tt.name, n)
		}
		c.Close()
	}
}

func TestClosedCache(t *testing.T) {
	w := newFake(hotKey("hot"))
	c := NewCache(w.Watcher, (&source{}).load, CacheConfig[string]{})
	c.Close()
	c.Close()
	if _, err := c.Get(context.Background(), "hot"); !errors.Is(err, context.Canceled) {
		t.Errorf("hot: %v", err)
	}
	if _, err := c.Get(context.Background(), "cold"); err != nil {
		t.Errorf("cold: %v", err)
	}
	if len(w.current()) != 0 {
		t.Error("still listening")
	}
}

func BenchmarkCacheHit(b *testing.B) {
	w := newFake(hotKey("hot"))
	c := NewCache(w.Watcher, (&source{}).load, CacheConfig[string]{TTL: time.Hour})
	defer c.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Get(context.Background(), "hot"); err != nil {
			b.Fatal(err)
		}
	}
}
