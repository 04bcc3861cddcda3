package page

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotsniff/hotsniff/internal/pipeline"
)

// pipes is a listener whose connections have no buffers: who does not read
// blocks the writer at once.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// ask opens a connection, asks for a stream and returns the status.
func (p *pipes) ask(t *testing.T, query string) (net.Conn, *bufio.Reader, int) {
	t.Helper()
	client, server := net.Pipe()
	p.conns <- server
	fmt.Fprintf(client, "GET /api/v1/events%s HTTP/1.1\r\nHost: a\r\n\r\n", query)
	in := bufio.NewReaderSize(client, 4096)
	line, err := in.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var code int
	fmt.Sscanf(line, "HTTP/1.1 %d", &code)
	return client, in, code
}

// event reads on to the next event.
func event(in *bufio.Reader) (string, error) {
	for {
		line, err := in.ReadString('\n')
		if err != nil || strings.HasPrefix(line, "data: ") {
			return line, err
		}
	}
}

// serveOn serves h with the time limits of the daemon until the test ends.
func serveOn(t *testing.T, l net.Listener, h http.Handler) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		cancel()
		s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// TestAStreamOutlivesTheTimeLimitsOfTheServer and has a frame a second.
func TestAStreamOutlivesTheTimeLimitsOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, p := handler(snapshot(1, "a"))
		l := newPipes()
		serveOn(t, l, h)
		c, in, code := l.ask(t, "?window=5s")
		if code != 200 {
			t.Fatalf("got %d", code)
		}
		begin := time.Now()
		for range 120 {
			if _, err := event(in); err != nil {
				t.Fatalf("after %v: %v", time.Since(begin), err)
			}
		}
		if d := time.Since(begin); d < 100*time.Second || d > 140*time.Second {
			t.Errorf("120 frames took %v; want about 2 min", d)
		}
		c.Close()
		time.Sleep(2 * time.Second)
		if s := p.Streams(); s != (Streams{}) {
			t.Errorf("got %+v; want none open, and none counted as slow who left", s)
		}
	})
}

// TestAChangeOfTheListIsSentAtOnce: not only at the next second.
func TestAChangeOfTheListIsSentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var latest atomic.Pointer[pipeline.Snapshot]
		latest.Store(snapshot(1, "a", "b"))
		p := New(Options{Latest: latest.Load, Status: func() Status { return Status{} }, Top: 20})
		mux := http.NewServeMux()
		p.Register(mux)
		l := newPipes()
		serveOn(t, l, mux)
		_, in, _ := l.ask(t, "")
		for range 3 {
			event(in)
		}
		time.Sleep(10 * time.Millisecond)
		begin := time.Now()
		latest.Store(snapshot(2, "a", "b"))
		text, err := event(in)
		if err != nil || strings.Count(text, `"state":"hot"`) != 2 || time.Since(begin) > lookEvery {
			t.Errorf("after %v: %v, %s", time.Since(begin), err, text)
		}
	})
}

// TestAThousandSlowReadersDelayNobody: a tenth gets a stream and loses it,
// the rest is refused, frames are shared, and who reads goes on reading.
func TestAThousandSlowReadersDelayNobody(t *testing.T) {
	var keys []string
	for i := range 200 {
		keys = append(keys, fmt.Sprintf("user:%d:%s", i, strings.Repeat("k", 100)))
	}
	synctest.Test(t, func(t *testing.T) {
		var looked atomic.Int64
		s := snapshot(100, keys...)
		h, p := handler(s)
		p.hub.opt.Latest = func() *pipeline.Snapshot { looked.Add(1); return s }
		l := newPipes()
		serveOn(t, l, h)
		_, good, _ := l.ask(t, "")
		first, _ := event(good)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		refused := 0
		for range 1000 {
			if _, _, code := l.ask(t, ""); code == http.StatusServiceUnavailable {
				refused++
			}
		}
		if refused != 1000-(maxStreams-1) || p.Streams().Open != maxStreams {
			t.Errorf("got %d refused, %+v", refused, p.Streams())
		}
		begin := time.Now()
		for range 4 {
			if _, err := event(good); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("4 frames took the reader %v", d)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
			t.Errorf("1,000 connections and %d streams with frames of %d KiB took %d MiB; want them shared", maxStreams, len(first)>>10, grown>>20)
		}
		for range 4 {
			event(good)
		}
		if got := p.Streams(); got.Open != 1 || got.Dropped != maxStreams-1 || got.Refused != 1000-(maxStreams-1) {
			t.Errorf("after %v: got %+v; want the slow ones dropped", writeTimeout, got)
		}
		if _, _, code := l.ask(t, ""); code != 200 {
			t.Errorf("later: got %d; want a stream", code)
		}
	})
}

// TestAFrameIsEncodedOnce however many ask.
func TestAFrameIsEncodedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := handler(snapshot(1, "a"))
		a, _ := p.hub.frame(slow)
		b, _ := p.hub.frame(slow)
		c, _ := p.hub.frame(fast)
		time.Sleep(frameEvery)
		d, _ := p.hub.frame(slow)
		if a != b || a == c || a == d {
			t.Error("want one frame a second and window")
		}
	})
}

// BenchmarkFrame is a frame of 20 keys.
func BenchmarkFrame(b *testing.B) {
	var keys []string
	for i := range 20 {
		keys = append(keys, fmt.Sprintf("user:%d:profile", i))
	}
	_, p := handler(snapshot(3, keys...))
	f, _ := p.hub.frame(slow)
	b.SetBytes(int64(len(f.event)))
	b.ReportAllocs()
	for b.Loop() {
		p.hub.made[slow] = time.Time{}
		p.hub.frame(slow)
	}
}
