package hotlist

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsniff/hotsniff/hotlist/redistest"
)

// hooked returns a client of s whose hot keys are k0 .. k4, and the hook.
func hooked(t *testing.T, s *redistest.Server) (*redis.Client, *Hook, *fakeWatcher) {
	t.Helper()
	var entries []Entry
	for i := range 5 {
		entries = append(entries, Entry{Key: fmt.Sprint("k", i), Action: ActionLocalize, TTLMs: MaxTTLMs})
	}
	w := newFake(entries...)
	h := NewHook(w.Watcher, HookConfig{})
	t.Cleanup(h.Close)
	c := s.Client()
	c.AddHook(h)
	return c, h, w
}

// commands returns how many commands of that name the server has run.
func commands(s *redistest.Server, name string) int {
	for _, line := range strings.Split(s.Do("INFO", "commandstats"), "\r\n") {
		var n int
		if rest, ok := strings.CutPrefix(line, "cmdstat_"+name+":calls="); ok {
			fmt.Sscanf(rest, "%d", &n)
			return n
		}
	}
	return 0
}

func TestHookFreesCopiesOfKeysThatLeft(t *testing.T) {
	s := redistest.Start(t)
	c, h, w := hooked(t, s)
	ctx := context.Background()
	s.Do("HSET", "k1", "f", "v", "g", "v")
	c.HGet(ctx, "k1", "f")
	c.HGet(ctx, "k1", "g")
	c.HGetAll(ctx, "k1")
	c.MGet(ctx, "k1", "k2")
	if n := h.Stats().Entries; n != 5 {
		t.Errorf("%d copies of two keys; want 5", n)
	}
	w.set(Entry{Key: "k2", Action: ActionLocalize, TTLMs: MaxTTLMs})
	if n := h.Stats().Entries; n != 1 {
		t.Errorf("k1 left, and there are %d copies; want that of k2", n)
	}
	w.set()
	if n := h.Stats().Entries; n != 0 {
		t.Errorf("all left, and there are %d copies", n)
	}
}

func TestHookServesHotKeysWithoutRedis(t *testing.T) {
	s := redistest.Start(t)
	c, h, _ := hooked(t, s)
	ctx := context.Background()
	s.Do("SET", "k0", "v")
	s.Do("HSET", "k1", "f", "v")
	for range 100 {
		if v, err := c.Get(ctx, "k0").Result(); v != "v" || err != nil {
			t.Fatalf("GET: %q, %v", v, err)
		}
		if _, err := c.Get(ctx, "k3").Result(); !errors.Is(err, redis.Nil) {
			t.Fatalf("GET of nothing: %v", err)
		}
		m := c.HGetAll(ctx, "k1").Val()
		if len(m) != 1 || m["f"] != "v" {
			t.Fatalf("HGETALL: %v", m)
		}
		m["f"] = "changed by the caller" // its own copy
		if vs := c.MGet(ctx, "k0", "k3", "cold").Val(); fmt.Sprint(vs) != "[v <nil> <nil>]" {
			t.Fatalf("MGET: %v", vs)
		}
		if n := c.Exists(ctx, "k0").Val(); n != 1 {
			t.Fatalf("EXISTS: %d", n)
		}
	}
	for name, want := range map[string]int{"get": 2, "hgetall": 1, "exists": 1} {
		if n := commands(s, name); n != want {
			t.Errorf("%d %s reached the server, want %d", n, name, want)
		}
	}
	if st := h.Stats(); st.Hits < 590 {
		t.Errorf("stats %+v", st)
	}
}

func TestConcurrentMissesMakeOneCommand(t *testing.T) {
	s := redistest.Start(t)
	c, _, _ := hooked(t, s)
	s.Do("SET", "k0", "v")
	s.Do("CLIENT", "PAUSE", "300", "ALL") // nobody is answered before all have asked
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if v := c.Get(context.Background(), "k0").Val(); v != "v" {
				t.Errorf("GET: %q", v)
			}
		})
	}
	wg.Wait()
	if n := commands(s, "get"); n != 1 {
		t.Errorf("%d GET reached the server", n)
	}
}

func TestWatchAndMultiAreNeverServed(t *testing.T) {
	s := redistest.Start(t)
	c, _, _ := hooked(t, s)
	ctx := context.Background()
	c.Set(ctx, "k0", "1", 0)
	c.Get(ctx, "k0")
	s.Do("SET", "k0", "2") // by somebody who does not tell
	if v := c.Get(ctx, "k0").Val(); v != "1" {
		t.Errorf("GET: %q, want the copy", v)
	}
	err := c.Watch(ctx, func(tx *redis.Tx) error {
		if v := tx.Get(ctx, "k0").Val(); v != "2" {
			t.Errorf("GET under WATCH: %q", v)
		}
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Incr(ctx, "k0")
			return nil
		})
		return err
	}, "k0")
	if v := c.Get(ctx, "k0").Val(); err != nil || v != "3" {
		t.Errorf("after the transaction: %q, %v", v, err)
	}
	s.Do("SET", "k0", "9")
	cmds, _ := c.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Get(ctx, "k0"); return nil })
	if v := cmds[0].(*redis.StringCmd).Val(); v != "9" {
		t.Errorf("GET in MULTI: %q", v)
	}
	conn := c.Conn()
	defer conn.Close()
	if err := conn.Select(ctx, 1).Err(); err != nil {
		t.Fatal(err)
	}
	if err := conn.Get(ctx, "k0").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("GET in another database: %v", err)
	}
}

func TestWritesReachOtherInstances(t *testing.T) {
	s := redistest.Start(t)
	type instance struct {
		c *redis.Client
		w *Watcher
	}
	var app [2]instance
	ctx := context.Background()
	for i := range app {
		c := s.Client()
		w := Watch(ctx, c, WatchConfig{})
		t.Cleanup(w.Close)
		h := NewHook(w, HookConfig{Tell: c, TTL: time.Hour})
		t.Cleanup(h.Close)
		c.AddHook(h)
		app[i] = instance{c, w}
		waitReady(t, w)
	}
	s.Do("PUBLISH", DefaultChannel, encoded(t, listNow("n", 1, "k\xff")))
	for _, a := range app {
		waitHot(t, a.w, "k\xff")
	}
	for n := range 20 {
		want := fmt.Sprint(n)
		app[n%2].c.Get(ctx, "k\xff")
		if err := app[n%2].c.Set(ctx, "k\xff", want, 0).Err(); err != nil {
			t.Fatal(err)
		}
		for i, a := range app {
			redistest.Eventually(t, patience, "the new value", func() bool { return a.c.Get(ctx, "k\xff").Val() == want })
			_ = i
		}
	}
	app[0].c.FlushDB(ctx)
	redistest.Eventually(t, patience, "flushed", func() bool { return app[1].c.Exists(ctx, "k\xff").Val() == 0 })
	if st := app[1].w.Status(); st.Drops == 0 || st.Malformed != 0 {
		t.Errorf("status %+v", st)
	}
}

// TestHookAnswersAsRedisWould runs random commands against two servers, on one
// through the hook, and compares all answers.
func TestHookAnswersAsRedisWould(t *testing.T) {
	s1, s2 := redistest.Start(t), redistest.Start(t)
	c1, h, w := hooked(t, s1)
	c2 := s2.Client()
	ctx := context.Background()
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	for i := range 6000 {
		op := randomOp(rnd)
		got, want := op(ctx, c1), op(ctx, c2)
		if got != want {
			t.Fatalf("seed %d, step %d: with the hook %s\nwithout %s", seed, i, got, want)
		}
		if i%500 == 499 { // the list changes now and then
			w.set(hotKey("k0"), Entry{Key: "k1", Action: ActionReplicate}, hotKey(fmt.Sprint("k", rnd.IntN(5))))
		}
	}
	if st := h.Stats(); st.Hits < 100 || st.Drops < 100 {
		t.Errorf("the test tests nothing: %+v", st)
	}
}

// randomOp returns one random command or group, which renders what it was
// answered.
func randomOp(rnd *rand.Rand) func(ctx context.Context, c *redis.Client) string {
	key := func() string { return fmt.Sprint("k", rnd.IntN(7)) } // k5 and k6 are not hot
	k, k2, n, f, op := key(), key(), rnd.IntN(100), fmt.Sprint("f", rnd.IntN(3)), rnd.IntN(40)
	return func(ctx context.Context, c *redis.Client) string {
		var cmd redis.Cmder
		switch op {
		case 0, 1, 2, 3:
			cmd = c.Get(ctx, k)
		case 4, 5:
			cmd = c.HGetAll(ctx, k)
		case 6, 7:
			cmd = c.MGet(ctx, k, k2, "k0", k)
		case 8:
			cmd = c.HGet(ctx, k, f)
		case 9:
			cmd = c.HMGet(ctx, k, f, "f1", "none")
		case 10:
			cmd = c.Exists(ctx, k)
		case 11:
			cmd = c.Exists(ctx, k, k2)
		case 12:
			cmd = c.LRange(ctx, k, 0, -1)
		case 13:
			cmd = c.StrLen(ctx, k)
		case 14:
			cmd = c.Type(ctx, k)
		case 15:
			cmd = c.Do(ctx, "get", k)
		case 16:
			cmd = c.HExists(ctx, k, f)
		case 17:
			cmd = c.SIsMember(ctx, k, n%5)
		case 18:
			cmd = c.ZScore(ctx, k, f)
		case 19:
			cmd = c.ZRangeWithScores(ctx, k, 0, -1)
		case 20:
			cmd = c.Set(ctx, k, n, 0)
		case 21:
			cmd = c.Incr(ctx, k)
		case 22:
			cmd = c.HSet(ctx, k, f, n)
		case 23:
			cmd = c.Del(ctx, k, k2)
		case 24:
			cmd = c.Append(ctx, k, "x")
		case 25:
			cmd = c.RPush(ctx, k, n)
		case 26:
			cmd = c.MSet(ctx, k, n, k2, n+1)
		case 27:
			cmd = c.Rename(ctx, k, k2)
		case 28:
			cmd = c.SAdd(ctx, k, n%5)
		case 29:
			cmd = c.ZAdd(ctx, k, redis.Z{Score: float64(n), Member: f})
		case 30:
			cmd = c.Eval(ctx, "return redis.call('set', KEYS[1], ARGV[1])", []string{k}, n)
		case 31:
			cmd = c.Do(ctx, "SET", []byte(k), n)
		case 32:
			cmd = c.GetDel(ctx, k)
		case 33:
			cmd = c.Copy(ctx, k, k2, 0, true)
		case 34:
			cmd = c.Expire(ctx, k, time.Hour)
		case 35:
			cmd = c.SetNX(ctx, k, n, 0)
		case 36, 37:
			run := c.Pipelined
			if op == 37 {
				run = c.TxPipelined
			}
			cmds, err := run(ctx, func(p redis.Pipeliner) error {
				p.Get(ctx, k)
				p.Set(ctx, k, n, 0)
				p.Get(ctx, k)
				p.HSet(ctx, k2, f, n)
				return nil
			})
			return fmt.Sprint(answers(cmds), err)
		case 38:
			cmd = c.GetRange(ctx, k, 0, 1)
		default:
			if n > 90 {
				cmd = c.FlushDB(ctx)
			} else {
				cmd = c.HDel(ctx, k, f)
			}
		}
		return answers([]redis.Cmder{cmd})
	}
}

func answers(cmds []redis.Cmder) string {
	var out []string
	for _, c := range cmds {
		out = append(out, c.String())
	}
	return strings.Join(slices.Clip(out), "; ")
}

func TestSignaturesAreUnambiguous(t *testing.T) {
	ctx := context.Background()
	seen := map[string]string{}
	for _, c := range []redis.Cmder{
		redis.NewStringCmd(ctx, "hget", "a", "b c"), redis.NewStringCmd(ctx, "hget", "a b", "c"),
		redis.NewStringCmd(ctx, "hget", "a", "1:b"), redis.NewStringCmd(ctx, "hget", "a 1:b"),
		redis.NewCmd(ctx, "hget", "a", "b c"), redis.NewStringCmd(ctx, "hget", "a", 1, 2), redis.NewStringCmd(ctx, "hget", "a", 12),
	} {
		sig, ok := signature(c)
		if other, dup := seen[sig]; dup || !ok {
			t.Errorf("%v and %v share %q", c, other, sig)
		}
		seen[sig] = c.String()
	}
	if _, ok := signature(redis.NewStringCmd(ctx, "get", 1.5)); ok {
		t.Error("an argument of an unknown type has a signature")
	}
}

func BenchmarkHookGet(b *testing.B) {
	w := newFake(hotKey("k"))
	h := NewHook(w.Watcher, HookConfig{TTL: time.Hour})
	defer h.Close()
	ctx := context.Background()
	run := h.ProcessHook(func(ctx context.Context, cmd redis.Cmder) error {
		cmd.(*redis.StringCmd).SetVal("v")
		return nil
	})
	b.ReportAllocs()
	for b.Loop() {
		if err := run(ctx, redis.NewStringCmd(ctx, "get", "k")); err != nil {
			b.Fatal(err)
		}
	}
}
