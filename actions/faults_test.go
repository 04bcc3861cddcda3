package actions

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsniff/hotsniff/hotlist"
	"github.com/hotsniff/hotsniff/hotlist/redistest"
)

// The tests of this file are named in docs/FAULTS.md. In each, a publisher and
// a subscriber work on a real server, something happens to it, the list
// changes meanwhile, and after the recovery the subscriber must hold the right
// list without anybody's help.

// scene is a publisher and a subscriber on one server.
type scene struct {
	t *testing.T
	s *redistest.Server
	p *running
	w *hotlist.Watcher
}

func newScene(t *testing.T, s *redistest.Server, cfg Config, sub redis.UniversalClient) *scene {
	t.Helper()
	if cfg.Connection.URL == "" {
		cfg.Connection = conn(s)
	}
	cfg.Retain = true
	sc := &scene{t: t, s: s}
	sc.w = hotlist.Watch(context.Background(), sub, hotlist.WatchConfig{})
	t.Cleanup(sc.w.Close)
	<-sc.w.Ready()
	sc.p = start(t, cfg)
	sc.p.Publish(listOf("before"))
	sc.see("before")
	return sc
}

// see waits until exactly these keys are hot at the subscriber.
func (sc *scene) see(want string) {
	sc.t.Helper()
	redistest.Eventually(sc.t, patience, "hot: "+want, func() bool {
		hot := sc.w.Hot()
		return len(hot) == 1 && hot[0].Key == want
	})
}

// meanwhile changes the list while the fault lasts. The many calls would hang
// the test if Publish ever waited for Redis.
func (sc *scene) meanwhile() {
	for range 1000 {
		sc.p.Publish(listOf("after"))
	}
}

// fails waits until an attempt ended like that.
func (sc *scene) fails(res Result) {
	sc.t.Helper()
	redistest.Eventually(sc.t, patience, "counted as "+res.String(), func() bool { return sc.p.Stats().Results[res] > 0 })
}

// retainFails is the same for the retained list.
func (sc *scene) retainFails(res Result) {
	sc.t.Helper()
	redistest.Eventually(sc.t, patience, "counted as "+res.String(), func() bool { return sc.p.Stats().Retained[res] > 0 })
}

// recovered waits for everything to be right again, and looks whether the log
// holds one line for the beginning and one for the end.
func (sc *scene) recovered(what string, kinds ...Result) {
	sc.t.Helper()
	sc.see("after")
	redistest.Eventually(sc.t, patience, "all well", func() bool {
		st := sc.p.Stats()
		return st.Failing == 0 && strings.Contains(sc.p.log.String(), what+" works again")
	})
	retained, err := hotlist.Decode([]byte(sc.s.Do("GET", "hotsniff:list:node-1")))
	if err != nil || keys(retained) != "after" {
		sc.t.Errorf("retained %v, %v", retained, err)
	}
	log := sc.p.log.String()
	for _, k := range kinds {
		if n := strings.Count(log, `msg="`+what+` failed" result=`+k.String()+" "); n != 1 {
			sc.t.Errorf("%d lines for %q in\n%s", n, k, log)
		}
	}
}

func subscriber(t *testing.T, addr string) redis.UniversalClient {
	c := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { c.Close() })
	return c
}

const (
	publishing = "publish hot list"
	retaining  = "retain hot list"
)

func TestFaultServerKilledAndRestarted(t *testing.T) {
	s := redistest.Start(t)
	sc := newScene(t, s, Config{}, subscriber(t, s.Addr))
	s.Kill()
	sc.meanwhile()
	sc.fails(ResultUnreachable)
	s.Run()
	sc.recovered(publishing, ResultUnreachable)
}

func TestFaultServerStopped(t *testing.T) {
	s := redistest.Start(t)
	sc := newScene(t, s, Config{}, subscriber(t, s.Addr))
	s.Pause()
	sc.meanwhile()
	sc.fails(ResultTimeout)
	s.Resume()
	sc.recovered(publishing, ResultTimeout)
}

func TestFaultServerStoppedWhileWeStop(t *testing.T) {
	s := redistest.Start(t)
	sc := newScene(t, s, Config{}, subscriber(t, s.Addr))
	s.Pause()
	sc.meanwhile()
	sc.p.stop() // hangs the test if the farewell had no bound
	s.Resume()
}

func TestFaultServerLoading(t *testing.T) {
	s := redistest.Start(t, "--enable-debug-command", "yes")
	sc := newScene(t, s, Config{Interval: 500 * time.Millisecond}, subscriber(t, s.Addr))
	s.Do("DEBUG", "POPULATE", "2000")
	s.Do("SAVE")
	s.Kill()
	sc.meanwhile()
	// 2,000 keys of 2 ms each: the server answers while it loads for 4 s.
	s.Run("--key-load-delay", "2000", "--loading-process-events-interval-bytes", "1024")
	sc.retainFails(ResultLoading) // PUBLISH is answered already
	sc.recovered(retaining, ResultLoading)
}

func TestFaultOutOfMemory(t *testing.T) {
	s := redistest.Start(t)
	sc := newScene(t, s, Config{Interval: 500 * time.Millisecond}, subscriber(t, s.Addr))
	s.Do("CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "1")
	sc.meanwhile()
	sc.see("after") // messages still go out
	sc.retainFails(ResultFull)
	s.Do("CONFIG", "SET", "maxmemory", "0")
	sc.recovered(retaining, ResultFull)
	if n := sc.p.Stats().Results[ResultOK]; n < 2 {
		t.Errorf("%d lists published", n)
	}
}

func TestFaultServerBecomesReplica(t *testing.T) {
	primary, s := redistest.Start(t), redistest.Start(t)
	sc := newScene(t, s, Config{Interval: 500 * time.Millisecond}, subscriber(t, s.Addr))
	s.Do("REPLICAOF", "127.0.0.1", fmt.Sprint(primary.Port))
	sc.meanwhile()
	sc.see("after") // its own subscribers hear us
	sc.retainFails(ResultReadOnly)
	s.Do("REPLICAOF", "NO", "ONE")
	sc.recovered(retaining, ResultReadOnly)
}

func TestFaultClientPause(t *testing.T) {
	s := redistest.Start(t)
	sc := newScene(t, s, Config{}, subscriber(t, s.Addr))
	s.Do("CLIENT", "PAUSE", "60000", "WRITE")
	sc.meanwhile()
	sc.fails(ResultTimeout)
	s.Do("CLIENT", "UNPAUSE")
	sc.recovered(publishing, ResultTimeout)
}

func TestFaultPasswordIsSetLater(t *testing.T) {
	s := redistest.Start(t)
	sc := newScene(t, s, Config{}, subscriber(t, s.Addr))
	s.Do("CONFIG", "SET", "requirepass", "new")
	s.Do("CLIENT", "KILL", "SKIPME", "yes", "TYPE", "normal")
	sc.meanwhile()
	sc.fails(ResultAuth) // NOAUTH
	s.Do("CONFIG", "SET", "requirepass", "")
	sc.recovered(publishing, ResultAuth)
}

func TestFaultPasswordChanges(t *testing.T) {
	s := redistest.Start(t)
	file := filepath.Join(t.TempDir(), "password")
	write := func(pw string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(pw+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first-secret")
	s.Do("ACL", "SETUSER", "hotsniff", "on", ">first-secret", "~hotsniff:*", "&hotsniff:hot", "+@all")
	sc := newScene(t, s, Config{Connection: Connection{URL: s.URL("hotsniff"), PasswordFile: file}}, subscriber(t, s.Addr))
	s.Do("ACL", "SETUSER", "hotsniff", "resetpass", ">second-secret")
	s.Do("CLIENT", "KILL", "USER", "hotsniff")
	sc.meanwhile()
	sc.fails(ResultAuth) // WRONGPASS
	write("second-secret")
	sc.recovered(publishing, ResultAuth)
	if log := sc.p.log.String(); strings.Contains(log, "secret") {
		t.Errorf("a password is in the log:\n%s", log)
	}
}

func TestFaultRightIsTakenAway(t *testing.T) {
	s := redistest.Start(t)
	s.Do("ACL", "SETUSER", "hotsniff", "on", "nopass", "~hotsniff:*", "&hotsniff:hot", "+@all")
	sc := newScene(t, s, Config{Connection: Connection{URL: s.URL("hotsniff"), PasswordFile: passwordFile(t, "any")}}, subscriber(t, s.Addr))
	s.Do("ACL", "SETUSER", "hotsniff", "-publish")
	sc.meanwhile()
	sc.fails(ResultDenied) // NOPERM
	s.Do("ACL", "SETUSER", "hotsniff", "+publish")
	sc.recovered(publishing, ResultDenied)
}

func passwordFile(t *testing.T, pw string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(pw), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestFaultSlowSubscriberIsCutOff(t *testing.T) {
	s := redistest.Start(t)
	s.Do("CONFIG", "SET", "client-output-buffer-limit", "pubsub 4mb 0 0")

	// A subscriber whose callback hangs reads nothing any more.
	c := subscriber(t, s.Addr)
	release := make(chan struct{})
	var once sync.Once
	slow := hotlist.Watch(context.Background(), c, hotlist.WatchConfig{OnEnter: func(*hotlist.Hot) { <-release }})
	t.Cleanup(func() { once.Do(func() { close(release) }); slow.Close() })
	<-slow.Ready()

	sc := newScene(t, s, Config{MinGap: 20 * time.Millisecond}, subscriber(t, s.Addr))
	// The slow one cannot come back while its callback hangs.
	evicted := func() bool { return strings.Count(s.Do("CLIENT", "LIST", "TYPE", "pubsub"), " laddr=") == 1 }
	filler := strings.Repeat("no list", 150_000) // the kernel's socket buffers hold tens of megabytes
	deadline := time.Now().Add(2 * patience)
	for i := 0; !evicted(); i++ {
		if time.Now().After(deadline) {
			t.Fatalf("the server never cut the slow subscriber off\n%s", s.Do("CLIENT", "LIST", "TYPE", "pubsub"))
		}
		sc.p.Publish(listOf(fmt.Sprint("k", i)))
		s.Do("PUBLISH", hotlist.DefaultChannel, filler)
		time.Sleep(10 * time.Millisecond)
	}
	sc.p.Publish(listOf("after"))
	sc.see("after") // the other subscriber never noticed
	if st := sc.p.Stats(); st.Failing != 0 || st.DurationCount != st.Results[ResultOK] {
		t.Errorf("the publisher noticed: %+v", st)
	}
	once.Do(func() { close(release) })
	redistest.Eventually(t, patience, "the slow subscriber back with the right list", func() bool {
		hot := slow.Hot()
		return len(hot) == 1 && hot[0].Key == "after" && slow.Status().Connected
	})
}

// cutter is a proxy that cuts connections after a number of bytes of replies.
type cutter struct {
	l    net.Listener
	addr string
	mu   sync.Mutex
	left int // reply bytes until the next cut; < 0: never
	cuts int
	wg   sync.WaitGroup
	open map[net.Conn]struct{}
}

func newCutter(t *testing.T, target string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{l: l, addr: l.Addr().String(), left: -1, open: map[net.Conn]struct{}{}}
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				in.Close()
				continue
			}
			c.mu.Lock()
			c.open[in], c.open[out] = struct{}{}, struct{}{}
			c.mu.Unlock()
			c.wg.Add(2)
			go func() { defer c.wg.Done(); io.Copy(out, in); out.Close() }()
			go func() { defer c.wg.Done(); c.replies(in, out); in.Close(); out.Close() }()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		c.mu.Lock()
		for conn := range c.open {
			conn.Close()
		}
		c.mu.Unlock()
		c.wg.Wait()
	})
	return c
}

// cutAfter cuts the next connection on which n bytes of replies passed.
func (c *cutter) cutAfter(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = n
}

func (c *cutter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cuts
}

func (c *cutter) replies(in, out net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := out.Read(buf)
		c.mu.Lock()
		pass, cut := n, false
		if c.left >= 0 {
			pass = min(n, c.left)
			c.left -= pass
			if cut = c.left == 0 && n > pass; cut {
				c.left = -1
				c.cuts++
			}
		}
		c.mu.Unlock()
		if _, werr := in.Write(buf[:pass]); werr != nil || err != nil || cut {
			return
		}
	}
}

func TestFaultPublisherCutInTheMiddleOfAReply(t *testing.T) {
	s := redistest.Start(t)
	proxy := newCutter(t, s.Addr)
	sc := newScene(t, s, Config{Connection: Connection{URL: "redis://" + proxy.addr}}, subscriber(t, s.Addr))
	// The reply to come is that to PUBLISH, not the last one of retaining.
	redistest.Eventually(t, patience, "the first list is retained", func() bool { return sc.p.Stats().Retained[ResultOK] > 0 })
	proxy.cutAfter(2) // ":1" of ":1\r\n"
	sc.meanwhile()
	sc.fails(ResultUnreachable)
	sc.recovered(publishing, ResultUnreachable)
}

func TestFaultSubscriberCutInTheMiddleOfAMessage(t *testing.T) {
	s := redistest.Start(t)
	proxy := newCutter(t, s.Addr)
	sc := newScene(t, s, Config{}, subscriber(t, proxy.addr))
	proxy.cutAfter(100) // in the middle of the list
	sc.meanwhile()
	redistest.Eventually(t, patience, "cut", func() bool { return proxy.count() == 1 })
	sc.see("after") // from the retained list, or the next message
	if st := sc.w.Status(); st.Malformed != 0 || st.Reconnects == 0 {
		t.Errorf("status %+v", st)
	}
}
