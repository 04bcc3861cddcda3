package hotlist

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsniff/hotsniff/hotlist/redistest"
)

func longLived(keys ...string) (out []Entry) {
	for _, k := range keys {
		out = append(out, Entry{Key: k, Action: ActionLocalize, TTLMs: MaxTTLMs})
	}
	return out
}

// tracked returns a client whose copies live so long that only tracking ends
// them, and waits until it tracks.
func tracked(t testing.TB, s *redistest.Server, keys ...string) (*redis.Client, *Hook, *fakeWatcher) {
	t.Helper()
	w := newFake(longLived(keys...)...)
	c := s.Client()
	h := NewHook(w.Watcher, HookConfig{Track: c})
	t.Cleanup(h.Close)
	c.AddHook(h)
	waitTracking(t, h.track, len(keys))
	return c, h, w
}

func waitTracking(t testing.TB, tr *Tracking, keys int) {
	t.Helper()
	redistest.Eventually(t, patience, fmt.Sprint("tracking ", keys, " keys"), func() bool {
		st := tr.Stats()
		return st.Connected && st.Keys == keys
	})
}

// sees waits until a read through c gives want.
func sees(t testing.TB, c *redis.Client, key, want string) {
	t.Helper()
	redistest.Eventually(t, patience, fmt.Sprintf("%s is %q", key, want), func() bool { return c.Get(context.Background(), key).Val() == want })
}

func TestForeignWritesDropTheCopy(t *testing.T) {
	s := redistest.Start(t)
	c, h, _ := tracked(t, s, "k")
	ctx := context.Background()
	for i, write := range []struct {
		args []any
		want string
	}{
		{[]any{"SET", "k", "1"}, "1"},
		{[]any{"INCR", "k"}, "2"},
		{[]any{"APPEND", "k", "0"}, "20"},
		{[]any{"DEL", "k"}, ""},
		{[]any{"EVAL", "return redis.call('SET', 'k', '3')", 0}, "3"}, // names no key
		{[]any{"SET", "other", "4"}, "3"},
		{[]any{"RENAME", "other", "k"}, "4"},
		{[]any{"PEXPIRE", "k", 20}, ""}, // the copy goes when the key does
		{[]any{"SET", "k", "5"}, "5"},
		{[]any{"FLUSHALL"}, ""},
		{[]any{"SET", "k", "6"}, "6"},
	} {
		before := c.Get(ctx, "k").Val()
		if again := c.Get(ctx, "k").Val(); again != before {
			t.Errorf("%d: %q and then %q without a write", i, before, again)
		}
		s.Do(write.args...)
		sees(t, c, "k", write.want)
		waitTracking(t, h.track, 1)
	}
	if st := h.track.Stats(); st.Drops < 8 || st.LastError != nil {
		t.Errorf("got %+v", st)
	}
	if st := h.Stats(); st.Hits == 0 {
		t.Error("nothing was served from memory: nothing was tested")
	}
}

func TestTrackingDropsCopiesOfCachesToo(t *testing.T) {
	s := redistest.Start(t)
	w := newFake(longLived("k")...)
	plain := s.Client()
	c := NewCache(w.Watcher, func(ctx context.Context, key string) (string, error) { return plain.Get(ctx, key).Result() }, CacheConfig[string]{TTL: time.Hour})
	defer c.Close()
	tr := NewTracking(w.Watcher, plain, TrackingConfig{})
	defer tr.Close()
	waitTracking(t, tr, 1)
	for n := range 5 {
		want := fmt.Sprint(n)
		s.Do("SET", "k", want)
		redistest.Eventually(t, patience, want, func() bool { v, err := c.Get(context.Background(), "k"); return err == nil && v == want })
	}
}

func TestKeysThatBeginAlike(t *testing.T) {
	s := redistest.Start(t)
	keys := []string{"a", "ab", "abc", "b:1", "b:10", "z\xff"}
	c, h, w := tracked(t, s, keys...)
	for _, k := range keys {
		s.Do("SET", k, "1")
	}
	for _, k := range keys {
		sees(t, c, k, "1")
		s.Do("SET", k, "2")
		sees(t, c, k, "2")
	}
	// Of what only begins like a listed key nothing is dropped.
	redistest.Eventually(t, patience, "quiet", func() bool { return h.track.Stats().Drops >= uint64(2*len(keys)) })
	drops, keyed := h.track.Stats().Drops, h.track.Stats().Keyed
	for range 10 {
		s.Do("SET", "abcd", "x")
		s.Do("SET", "b:100", "x")
		s.Do("SET", "c", "x") // nobody tracks it
	}
	redistest.Eventually(t, patience, "told", func() bool { return h.track.Stats().Keyed >= keyed+20 })
	if st := h.track.Stats(); st.Drops != drops || st.Keyed != keyed+20 {
		t.Errorf("got %+v; want %d drops, %d keys", st, drops, keyed+20)
	}
	// The short key leaves, and the longer ones stay tracked; new ones come.
	w.set(longLived("abc", "b:10", "new")...)
	waitTracking(t, h.track, 3)
	for n := range 3 {
		for _, k := range []string{"abc", "b:10", "new"} {
			s.Do("SET", k, n)
			sees(t, c, k, fmt.Sprint(n))
		}
	}
	w.set()
	waitTracking(t, h.track, 0)
	keyed = h.track.Stats().Keyed
	s.Do("SET", "abc", "x")
	w.set(longLived("mark")...)
	waitTracking(t, h.track, 1)
	s.Do("SET", "mark", "x")
	redistest.Eventually(t, patience, "mark", func() bool { return h.track.Stats().Keyed > keyed })
	if got := h.track.Stats().Keyed; got != keyed+1 {
		t.Errorf("%d keys were told after none was listed; want only mark", got-keyed)
	}
}

func TestTrackingSurvives(t *testing.T) {
	s := redistest.Start(t)
	c, h, _ := tracked(t, s, "k")
	kill := func(kind string) {
		for line := range strings.Lines(s.Do("CLIENT", "LIST", "TYPE", kind)) {
			// Only the two of the tracking: the others are not flagged so.
			if kind == "pubsub" || strings.Contains(line, "flags=tB") {
				id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
				s.Do("CLIENT", "KILL", "ID", id)
			}
		}
	}
	for i, fault := range []struct {
		name string
		do   func()
	}{
		{"the receiving connection is killed", func() { kill("pubsub") }},
		{"the tracking connection is killed", func() { kill("normal") }},
		{"the server is restarted", func() { s.Kill(); s.Run() }},
		{"everything is killed", func() { kill("normal"); kill("pubsub") }},
	} {
		restarts := h.track.Stats().Restarts
		s.Do("SET", "k", fmt.Sprint("before ", i))
		sees(t, c, "k", fmt.Sprint("before ", i))
		fault.do()
		s.Do("SET", "k", fmt.Sprint("meanwhile ", i)) // nobody is told
		redistest.Eventually(t, patience, fault.name+": noticed", func() bool { return h.track.Stats().Restarts > restarts })
		sees(t, c, "k", fmt.Sprint("meanwhile ", i))
		waitTracking(t, h.track, 1)
		s.Do("SET", "k", fmt.Sprint("after ", i))
		sees(t, c, "k", fmt.Sprint("after ", i))
	}
}

func TestTrackingIsBounded(t *testing.T) {
	s := redistest.Start(t)
	w := newFake(longLived("")...)
	for i := range 5 {
		w.set(append(longLived(""), longLived(fmt.Sprint("k", i), "k9", "counter")...)...)
	}
	tr := NewTracking(w.Watcher, s.Client(), TrackingConfig{MaxKeys: 2})
	defer tr.Close()
	waitTracking(t, tr, 2)
	if st := tr.Stats(); st.Untracked != 2 {
		t.Errorf("got %+v; want 2 left out: one beyond the bound, and the empty key", st)
	}
	if n := strings.Count(s.Do("CLIENT", "LIST"), "flags=tB"); n != 1 {
		t.Errorf("%d connections track; want 1", n)
	}
}

func TestTrackingNeedsTheseRights(t *testing.T) {
	s := redistest.Start(t)
	rights := strings.Fields("+subscribe +multi +exec +client|id +client|tracking +client|getredir &__redis__:invalidate")
	works := func(rights []string) bool {
		args := []any{"ACL", "SETUSER", "u", "reset", "on", ">pw", "resetchannels", "-@all"}
		for _, r := range rights {
			args = append(args, r)
		}
		s.Do(args...)
		c := redis.NewClient(&redis.Options{Addr: s.Addr, Username: "u", Password: "pw", Protocol: 2, DisableIdentity: true})
		defer c.Close()
		w := newFake(longLived("k")...)
		tr := NewTracking(w.Watcher, c, TrackingConfig{})
		defer tr.Close()
		ok := func() bool { st := tr.Stats(); return st.Connected && st.Keys == 1 }
		failed := func() bool { st := tr.Stats(); return st.LastError != nil || st.Restarts > 0 }
		redistest.Eventually(t, patience, "tried", func() bool { return ok() || failed() })
		// Whether it still tracks is asked at the next step.
		before := tr.Stats().Restarts
		for range 2 {
			state := tr.state.Load()
			redistest.Eventually(t, patience, "a step", func() bool { tr.poke(); return tr.state.Load() != state })
		}
		return ok() && tr.Stats().Restarts == before
	}
	if !works(rights) {
		t.Fatalf("%v is not enough: %s", rights, s.Do("ACL", "LOG"))
	}
	for i, r := range rights {
		if works(slices.Delete(slices.Clone(rights), i, i+1)) {
			t.Errorf("works without %s too", r)
		}
	}
}

func TestPrefixesDoNotOverlap(t *testing.T) {
	for _, c := range []struct{ keys, want []string }{
		{nil, nil},
		{[]string{"a"}, []string{"a"}},
		{[]string{"a", "ab", "abc", "b"}, []string{"a", "b"}},
		{[]string{"a", "a!", "b", "ba", "bb", "c"}, []string{"a", "b", "c"}},
		{[]string{"ab", "ac", "ad"}, []string{"ab", "ac", "ad"}},
	} {
		if got := prefixes(c.keys); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q; want %q", c.keys, got, c.want)
		}
	}
}

// BenchmarkForeignWriteToDrop is the time from the answer to a foreign write
// to the moment at which the copy is gone.
func BenchmarkForeignWriteToDrop(b *testing.B) {
	s := redistest.Start(b)
	c, _, w := tracked(b, s, "k")
	writer := s.Client()
	ctx := context.Background()
	hot, _ := w.Lookup("k")
	var all []time.Duration
	for b.Loop() {
		c.Get(ctx, "k")
		gen := hot.gen.Load()
		if err := writer.Set(ctx, "k", len(all), 0).Err(); err != nil {
			b.Fatal(err)
		}
		begin := time.Now()
		for hot.gen.Load() == gen {
			time.Sleep(10 * time.Microsecond)
		}
		all = append(all, time.Since(begin))
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "µs-median")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "µs-p99")
	b.ReportMetric(float64(all[len(all)-1].Microseconds()), "µs-most")
}
