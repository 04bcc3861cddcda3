package hotlist

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsniff/hotsniff/hotlist/redistest"
)

func TestSlotsAreThoseOfTheServer(t *testing.T) {
	s := redistest.Start(t, "--cluster-enabled", "yes")
	for _, k := range []string{"", "a", "product:1", "{tag}x", "x{tag}y", "{}x", "a{b", "a}b{c}d", "x{{a}}y", "foo{bar}{zap}", "\xff\x00"} {
		if got, want := fmt.Sprint(slotOf(k)), s.Do("CLUSTER", "KEYSLOT", k); got != want {
			t.Errorf("slot of %q is %s, want %s", k, got, want)
		}
	}
}

func TestCopiesLieInDifferentPartsOfTheSlots(t *testing.T) {
	for _, key := range []string{"product:1", "{user:7}:cart", "a{b", "{}", ""} {
		for _, n := range []int{2, 16, MaxCopies} {
			parts := map[int]bool{}
			for _, name := range copyNames(key, n) {
				parts[slotOf(name)*n/clusterSlots] = true
				if !strings.Contains(name, copyMark) {
					t.Errorf("%q does not look like a copy", name)
				}
			}
			if len(parts) != n {
				t.Errorf("%q: %d copies lie in %d parts", key, n, len(parts))
			}
		}
	}
	if a, b := copyNames("k", 8), copyNames("k", 8); strings.Join(a, " ") != strings.Join(b, " ") {
		t.Error("two instances do not agree on the names")
	}
}

func replicated(key string, copies int, ttlMs int64) Entry {
	return Entry{Key: key, Action: ActionReplicate, Copies: copies, TTLMs: ttlMs}
}

func TestReplicateSpreadsReadsAndCleansUp(t *testing.T) {
	s := redistest.Start(t)
	ctx := context.Background()
	w := newFake(replicated("hot", 4, 60_000), hotKey("local"))
	r := NewReplicate(w.Watcher, s.Client(), ReplicateConfig{})
	defer r.Close()
	read := func(key, want string) {
		t.Helper()
		if v, err := r.Get(ctx, key); v != want || err != nil {
			t.Fatalf("Get(%s) = %q, %v; want %q", key, v, err, want)
		}
	}
	if _, err := r.Get(ctx, "hot"); !errors.Is(err, redis.Nil) {
		t.Errorf("nothing there: %v", err)
	}
	s.Do("SET", "hot", "1")
	s.Do("SET", "local", "x")
	for range 400 {
		read("hot", "1")
		read("local", "x")
	}
	if st := r.Stats(); st.Refills != 4 || st.Hits != 396 {
		t.Errorf("stats %+v", st)
	}
	if n := s.Do("DBSIZE"); n != "6" {
		t.Errorf("%s keys: %s", n, s.Do("KEYS", "*"))
	}
	if err := r.Set(ctx, "hot", "2", 0); err != nil {
		t.Fatal(err)
	}
	for range 40 {
		read("hot", "2")
	}
	if had, err := r.Del(ctx, "hot"); !had || err != nil {
		t.Errorf("Del: %v, %v", had, err)
	}
	if _, err := r.Get(ctx, "hot"); !errors.Is(err, redis.Nil) {
		t.Errorf("after Del: %v", err)
	}
	if n := s.Do("DBSIZE"); n != "1" {
		t.Errorf("after Del: %s", s.Do("KEYS", "*"))
	}
}

func TestCopiesAreRemovedWhenTheKeyCools(t *testing.T) {
	s := redistest.Start(t)
	ctx := context.Background()
	w := newFake(replicated("hot", 4, 500))
	r := NewReplicate(w.Watcher, s.Client(), ReplicateConfig{})
	defer r.Close()
	if err := r.Set(ctx, "hot", "1", 0); err != nil {
		t.Fatal(err)
	}
	w.set()
	if r.find("hot") == nil {
		t.Error("the copies are forgotten at once, though other instances may still write them")
	}
	redistest.Eventually(t, patience, "without copies", func() bool { return s.Do("KEYS", "*") == "[hot]" && r.find("hot") == nil })
	w.set(replicated("hot", 8, 60_000)) // hot again, with more copies
	if err := r.Set(ctx, "hot", "2", 0); err != nil {
		t.Fatal(err)
	}
	if n := s.Do("DBSIZE"); n != "9" {
		t.Errorf("hot again: %s", s.Do("KEYS", "*"))
	}
}

func TestCopyDoesNotOutliveItsKey(t *testing.T) {
	s := redistest.Start(t)
	ctx := context.Background()
	w := newFake(replicated("hot", 2, 60_000))
	r := NewReplicate(w.Watcher, s.Client(), ReplicateConfig{})
	defer r.Close()
	s.Do("SET", "hot", "1", "PX", "300")
	if _, err := r.Get(ctx, "hot"); err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	redistest.Eventually(t, patience, "gone", func() bool { _, err := r.Get(ctx, "hot"); return errors.Is(err, redis.Nil) })
	redistest.Eventually(t, patience, "gone with its copies", func() bool { return s.Do("DBSIZE") == "0" })
}

func TestReplicateInAClusterWithoutOneNode(t *testing.T) {
	ss := redistest.StartCluster(t, 3)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{ss[0].Addr, ss[1].Addr, ss[2].Addr}, DialTimeout: time.Second, DialerRetries: 1, MaxRedirects: 1})
	defer c.Close()
	ctx := context.Background()
	w := newFake(replicated("{user:1}:cart", 6, 60_000))
	r := NewReplicate(w.Watcher, c, ReplicateConfig{})
	defer r.Close()
	if err := r.Set(ctx, "{user:1}:cart", "v", 0); err != nil {
		t.Fatal(err)
	}
	home := -1
	for i, s := range ss {
		names := s.Do("KEYS", "*"+copyMark+"*")
		if n := strings.Count(names, copyMark); n != 2 {
			t.Errorf("node %d holds %d copies: %s", i, n, names)
		}
		if strings.Contains(s.Do("KEYS", "*"), "{user:1}:cart") {
			home = i
		}
	}
	ss[(home+1)%3].Kill()
	for range 20 {
		if v, err := r.Get(ctx, "{user:1}:cart"); v != "v" || err != nil {
			t.Fatalf("one node down: %q, %v", v, err)
		}
	}
}
