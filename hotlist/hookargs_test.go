package hotlist

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsniff/hotsniff/hotlist/redistest"
)

// TestArgumentsAreTheTextThatIsSent asks the server what go-redis sends: a
// write must drop the copy in whatever type its key comes.
func TestArgumentsAreTheTextThatIsSent(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client()
	ctx := context.Background()
	text, n, f, b, at, d := "text", 7, 1e21, true, time.Unix(1e9, 5), time.Second
	var none *int
	var noText *string
	for _, arg := range []any{
		"text", []byte("b\xff"), nil, 5, int8(-5), int16(5), int32(5), int64(-1 << 62), uint(5), uint8(5), uint16(5), uint32(5),
		uint64(1 << 63), uintptr(9), float32(0.1), 0.1, 1e-9, true, false, time.Minute, at, net.IPv4(10, 0, 0, 1),
		&text, &n, &f, &b, &at, &d, none, noText,
	} {
		want, err := c.Do(ctx, "ECHO", arg).Text()
		got, ok := argText([]any{arg}, 0)
		if err != nil || !ok || got != want {
			t.Errorf("%T %v: %q, %v; go-redis sends %q, %v", arg, arg, got, ok, want, err)
		}
	}
	if _, ok := argText([]any{struct{}{}}, 0); ok {
		t.Error("an argument that go-redis refuses has a text")
	}
}

func TestWriteWithANumberAsKeyDropsTheCopy(t *testing.T) {
	s := redistest.Start(t)
	w := newFake(longLived("5")...)
	h := NewHook(w.Watcher, HookConfig{})
	defer h.Close()
	c := s.Client()
	c.AddHook(h)
	ctx := context.Background()
	c.Set(ctx, "5", "old", 0)
	c.Get(ctx, "5")
	c.Do(ctx, "SET", 5, "new")
	if v := c.Get(ctx, "5").Val(); v != "new" {
		t.Errorf("GET after a write of our own: %q", v)
	}
}

func TestCallerMayWriteIntoTheBytesOfAnAnswer(t *testing.T) {
	s := redistest.Start(t)
	c, h, _ := hooked(t, s)
	s.Do("SET", "k0", "value")
	for range 3 { // the first answer is Redis', the others are copies
		b, err := c.Get(context.Background(), "k0").Bytes()
		if err != nil || string(b) != "value" {
			t.Fatalf("GET: %q, %v", b, err)
		}
		b[0] = 'X'
	}
	if h.Stats().Hits != 2 {
		t.Errorf("stats %+v", h.Stats())
	}
}

func TestQueuedWriteDropsWhenItIsCarriedOut(t *testing.T) {
	s := redistest.Start(t)
	c, _, _ := hooked(t, s)
	ctx := context.Background()
	exec := map[string]func(conn *redis.Conn){
		"alone": func(conn *redis.Conn) { conn.Do(ctx, "EXEC") },
		"in a pipeline": func(conn *redis.Conn) {
			conn.Pipelined(ctx, func(p redis.Pipeliner) error { p.Do(ctx, "EXEC"); return nil })
		},
	}
	for name, exec := range exec {
		c.Set(ctx, "k0", "old", 0)
		conn := c.Conn()
		conn.Do(ctx, "MULTI")
		conn.Do(ctx, "SET", "k0", "new")
		if v := c.Get(ctx, "k0").Val(); v != "old" {
			t.Errorf("EXEC %s: before it %q", name, v)
		}
		exec(conn)
		if v := c.Get(ctx, "k0").Val(); v != "new" {
			t.Errorf("EXEC %s: GET after it %q", name, v)
		}
		conn.Close()
	}
}

func TestSelectInAPipelineEndsServing(t *testing.T) {
	s := redistest.Start(t)
	c, h, _ := hooked(t, s)
	ctx := context.Background()
	c.Set(ctx, "k0", "of database 0", 0)
	c.Get(ctx, "k0")
	c.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Ping(ctx); return nil }) // ends where it began
	c.Get(ctx, "k0")
	if h.Stats().Hits != 1 {
		t.Errorf("after a transaction: %+v", h.Stats())
	}
	conn := c.Conn()
	defer conn.Close()
	conn.Pipelined(ctx, func(p redis.Pipeliner) error { p.Select(ctx, 1); return nil })
	if v, err := conn.Get(ctx, "k0").Result(); !errors.Is(err, redis.Nil) {
		t.Errorf("GET in database 1: %q, %v", v, err)
	}
}

// TestWaitingEndsWithTheContext: who waits for another's read leaves when its
// own context ends, and the other's read goes on.
func TestWaitingEndsWithTheContext(t *testing.T) {
	w := newFake(hotKey("k"))
	h := NewHook(w.Watcher, HookConfig{})
	defer h.Close()
	asked, answer := make(chan struct{}), make(chan struct{})
	run := h.ProcessHook(func(_ context.Context, cmd redis.Cmder) error {
		close(asked) // twice would panic
		<-answer
		cmd.(*redis.StringCmd).SetVal("v")
		return nil
	})
	ctx := context.Background()
	first := redis.NewStringCmd(ctx, "get", "k")
	done := make(chan error)
	go func() { done <- run(ctx, first) }()
	<-asked
	left, cancel := context.WithCancel(ctx)
	cancel()
	if err := run(left, redis.NewStringCmd(left, "get", "k")); !errors.Is(err, context.Canceled) {
		t.Errorf("the one who left: %v", err)
	}
	close(answer)
	if err := <-done; err != nil || first.Val() != "v" {
		t.Errorf("the other: %q, %v", first.Val(), err)
	}
}
