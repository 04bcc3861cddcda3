package hotlist

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/hotsniff/hotsniff/hotlist/redistest"
)

func TestMain(m *testing.M) {
	// go-redis' probe of a server that is down notices only after its next
	// second that the pool was closed.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// patience is for what should take a moment, on a machine that is busy.
const patience = 30 * time.Second

// trail notes what the callbacks say.
type trail struct {
	mu sync.Mutex
	s  []string
}

func (tr *trail) note(sign string) func(*Hot) {
	return func(h *Hot) {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		tr.s = append(tr.s, sign+h.Key)
	}
}

func (tr *trail) String() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return strings.Join(tr.s, " ")
}

func watchOn(t *testing.T, c redis.UniversalClient, cfg WatchConfig) (*Watcher, *trail) {
	t.Helper()
	tr := &trail{}
	cfg.OnEnter, cfg.OnLeave = tr.note("+"), tr.note("-")
	w := Watch(context.Background(), c, cfg)
	t.Cleanup(w.Close)
	return w, tr
}

func waitReady(t *testing.T, w *Watcher) {
	t.Helper()
	select {
	case <-w.Ready():
	case <-time.After(patience):
		t.Fatalf("not ready: %+v", w.Status())
	}
}

// listNow is a list made now, so that it is fresh as a retained one too.
func listNow(node string, seq uint64, keys ...string) *List {
	l := &List{Node: node, EpochMs: 1, Seq: seq, AtMs: time.Now().UnixMilli(), TTLMs: 60000, AccessesPerSecond: 1000}
	for _, k := range keys {
		l.Entries = append(l.Entries, Entry{Key: k, Port: 6379, Share: 0.1, AccessesPerSecond: 100, Action: ActionLocalize, TTLMs: 2000})
	}
	return l
}

func encoded(t testing.TB, l *List) string {
	t.Helper()
	b, err := Encode(l)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func waitHot(t *testing.T, w *Watcher, want string) {
	t.Helper()
	redistest.Eventually(t, patience, "hot: "+want, func() bool {
		var ks []string
		for _, h := range w.Hot() {
			ks = append(ks, h.Key)
		}
		return strings.Join(ks, " ") == want
	})
}

func TestWatchReadsRetainedListsThenFollows(t *testing.T) {
	s := redistest.Start(t)
	for _, n := range []string{"n1", "n2", "gone"} {
		s.Do("ZADD", NodesKey, time.Now().UnixMilli(), n)
	}
	s.Do("ZADD", NodesKey, 1, "bad\nname")
	s.Do("SET", ListKeyPrefix+"n1", encoded(t, listNow("n1", 5, "a")))
	s.Do("SET", ListKeyPrefix+"n2", encoded(t, listNow("n2", 5, "b")))
	w, tr := watchOn(t, s.Client(), WatchConfig{})
	waitReady(t, w)
	if !w.IsHot("a") || !w.IsHot("b") || w.IsHot("c") {
		t.Errorf("after Ready: %v", w.Hot())
	}
	s.Do("PUBLISH", DefaultChannel, encoded(t, listNow("n1", 4, "old")))
	s.Do("PUBLISH", DefaultChannel, encoded(t, listNow("n1", 8, "c")))
	waitHot(t, w, "b c")
	if h, ok := w.Lookup("c"); !ok || h.Share != 0.05 || h.TTL != 2*time.Second {
		t.Errorf("Lookup(c) = %+v, %v", h, ok)
	}
	st := w.Status()
	if !st.Connected || st.Lists != 3 || st.OutOfDate != 1 || st.Gaps != 2 || st.LastError != nil || len(st.Nodes) != 2 || st.Nodes[0].Node != "n1" || st.Nodes[0].Seq != 8 {
		t.Errorf("status %+v", st)
	}
	if got := tr.String(); got != "+a +b -a +c" && got != "+b +a -a +c" {
		t.Errorf("callbacks %q", got)
	}
}

func TestHostileMessagesAreCountedAndChangeNothing(t *testing.T) {
	s := redistest.Start(t)
	w, _ := watchOn(t, s.Client(), WatchConfig{})
	waitReady(t, w)
	s.Do("PUBLISH", DefaultChannel, encoded(t, listNow("n1", 1, "a")))
	waitHot(t, w, "a")
	n := uint64(0)
	for _, tt := range malformed {
		s.Do("PUBLISH", DefaultChannel, tt.in)
		if tt.want == ErrMalformed || tt.want == ErrTooLarge {
			n++
		}
	}
	redistest.Eventually(t, patience, "counted", func() bool {
		st := w.Status()
		return st.Malformed == n && st.Versions == 1
	})
	if !w.IsHot("a") || w.Status().Keys != 1 {
		t.Errorf("the list is now %v", w.Hot())
	}
}

func TestHostileRetainedKeysChangeNothing(t *testing.T) {
	s := redistest.Start(t)
	s.Do("ZADD", NodesKey, 1, "n1", 2, "n2", 3, "n3", 4, "n4")
	s.Do("SET", ListKeyPrefix+"n1", strings.Repeat("x", 8<<20))
	s.Do("RPUSH", ListKeyPrefix+"n2", "not a string")
	old := listNow("n3", 1, "stale")
	old.AtMs -= 61_000
	s.Do("SET", ListKeyPrefix+"n3", encoded(t, old))
	s.Do("SET", ListKeyPrefix+"n4", encoded(t, listNow("n4", 1, "good")))
	w, _ := watchOn(t, s.Client(), WatchConfig{})
	waitReady(t, w)
	waitHot(t, w, "good")
	if st := w.Status(); st.Malformed != 1 || st.Lapsed != 1 {
		t.Errorf("status %+v", st)
	}
}

func TestWatchSurvivesARestart(t *testing.T) {
	s := redistest.Start(t)
	w, tr := watchOn(t, s.Client(), WatchConfig{})
	waitReady(t, w)
	s.Do("PUBLISH", DefaultChannel, encoded(t, listNow("n1", 1, "a")))
	waitHot(t, w, "a")
	s.Kill()
	redistest.Eventually(t, patience, "disconnected", func() bool { return !w.Status().Connected })
	if !w.IsHot("a") {
		t.Error("a disconnect alone must not take keys off the list")
	}
	s.Run()
	// What came while nobody listened is in the retained list.
	s.Do("ZADD", NodesKey, time.Now().UnixMilli(), "n1")
	s.Do("SET", ListKeyPrefix+"n1", encoded(t, listNow("n1", 3, "b")))
	waitHotAgain(t, s, w, 3, "b")
	if got := tr.String(); got != "+a -a +b" {
		t.Errorf("callbacks %q", got)
	}
}

// waitHotAgain publishes the retained list again until it is seen, in case the
// watcher was back before the test had stored it.
func waitHotAgain(t *testing.T, s *redistest.Server, w *Watcher, seq uint64, key string) {
	t.Helper()
	msg := encoded(t, listNow("n1", seq, key))
	redistest.Eventually(t, patience, "hot again: "+key, func() bool {
		if w.IsHot(key) {
			return true
		}
		s.Do("PUBLISH", DefaultChannel, msg)
		time.Sleep(50 * time.Millisecond)
		return false
	})
}

func TestListenNoticesAServerThatHangs(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client()
	ctx, cancel := context.WithCancel(context.Background())
	up, down, got := make(chan bool, 100), make(chan error, 100), make(chan string, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		Listen(ctx, c, ListenConfig{
			Silence:   500 * time.Millisecond,
			OnUp:      func(context.Context) { up <- true },
			OnDown:    func(err error) { down <- err },
			OnMessage: func(p string) { got <- p },
		})
	}()
	defer func() { cancel(); <-done }()
	wait(t, up)
	// Silent for longer than Silence, but alive: it answers when asked.
	time.Sleep(1200 * time.Millisecond)
	s.Do("PUBLISH", DefaultChannel, "hello")
	if m := wait(t, got); m != "hello" {
		t.Errorf("message %q", m)
	}
	if len(down) != 0 {
		t.Errorf("given up although the server answers: %v", <-down)
	}
	s.Pause()
	if err := wait(t, down); !strings.Contains(err.Error(), errSilent.Error()) {
		t.Errorf("given up because of %v", err)
	}
	s.Resume()
	wait(t, up)
	redistest.Eventually(t, patience, "a message again", func() bool {
		s.Do("PUBLISH", DefaultChannel, "again")
		select {
		case m := <-got:
			return m == "again"
		case <-time.After(100 * time.Millisecond):
			return false
		}
	})
}

func wait[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func TestCloseEndsAWatcherWhoseServerIsGone(t *testing.T) {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1, MaxRetries: -1})
	defer c.Close()
	w := Watch(context.Background(), c, WatchConfig{})
	redistest.Eventually(t, patience, "tried", func() bool { return w.Status().Reconnects > 0 })
	if st := w.Status(); st.Connected || st.LastError == nil {
		t.Errorf("status %+v", st)
	}
	w.Close()
	w.Close()
}

func hotWatcher(n int) *Watcher {
	m := newMerger()
	l := nodeListOf("n", 1, 1, 1)
	for i := range n {
		l.Entries = append(l.Entries, Entry{Key: fmt.Sprintf("product:%08d:detail", i)})
	}
	m.offer(l, 1, false, t0)
	w := &Watcher{}
	w.view.Store(m.merge())
	return w
}

func TestIsHotDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	w := hotWatcher(100)
	if n := testing.AllocsPerRun(1000, func() { w.IsHot("product:00000007:detail"); w.IsHot("no") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkIsHot(b *testing.B) {
	w := hotWatcher(100)
	for name, key := range map[string]string{"hit": "product:00000007:detail", "miss": "product:99999999:detail"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w.IsHot(key)
			}
		})
	}
}

func BenchmarkMerge100Nodes(b *testing.B) {
	m := newMerger()
	for n := range 100 {
		l := nodeListOf(fmt.Sprint("n", n), 1, 1, 1)
		for i := range 100 {
			l.Entries = append(l.Entries, Entry{Key: fmt.Sprintf("product:%d", i*n%1000)})
		}
		m.offer(l, 1, false, t0)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.merge()
	}
}
