package actions

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/hotsniff/hotsniff/hotlist"
	"github.com/hotsniff/hotsniff/hotlist/redistest"
)

func TestMain(m *testing.M) {
	// go-redis' probe of a server that is down notices only after its next
	// second that the pool was closed.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// patience is for what should take a moment, on a machine that is busy.
const patience = 30 * time.Second

// logBuffer is a handler's writer that tests may read at any time.
type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// running is a publisher whose Run is going on.
type running struct {
	*Publisher
	log  *logBuffer
	stop func() // ends Run and waits; safe to call twice
}

func start(t *testing.T, cfg Config) *running {
	t.Helper()
	r := &running{log: &logBuffer{}}
	if cfg.Node == "" {
		cfg.Node = "node-1"
	}
	cfg.Log = slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.Publisher = p
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := p.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	r.stop = func() { cancel(); <-done }
	t.Cleanup(r.stop)
	return r
}

func conn(s *redistest.Server) Connection { return Connection{URL: s.URL("")} }

func listOf(keys ...string) *hotlist.List {
	l := &hotlist.List{WindowSeconds: 60, SampleEvery: 1, AccessesPerSecond: 1000}
	for _, k := range keys {
		l.Entries = append(l.Entries, hotlist.Entry{Key: k, Port: 6379, Share: 0.1, ShareLow: 0.09, AccessesPerSecond: 100, Action: hotlist.ActionLocalize, Reason: hotlist.ReasonReadHot, TTLMs: 2000})
	}
	return l
}

// tap subscribes like a foreign program and collects lists.
type tap struct {
	mu    sync.Mutex
	lists []*hotlist.List
	other []string
}

func listen(t *testing.T, c redis.UniversalClient, channel string) *tap {
	t.Helper()
	tp := &tap{}
	ps := c.Subscribe(context.Background(), channel)
	if _, err := ps.Receive(context.Background()); err != nil {
		t.Fatal(err)
	}
	ch := ps.Channel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m := range ch {
			l, err := hotlist.Decode([]byte(m.Payload))
			tp.mu.Lock()
			if err == nil {
				tp.lists = append(tp.lists, l)
			} else {
				tp.other = append(tp.other, m.Payload)
			}
			tp.mu.Unlock()
		}
	}()
	t.Cleanup(func() { ps.Close(); <-done })
	return tp
}

func (tp *tap) all() []*hotlist.List {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return slices.Clone(tp.lists)
}

// last returns the keys of the newest list, joined, and "-" before the first.
func (tp *tap) last() string {
	all := tp.all()
	if len(all) == 0 {
		return "-"
	}
	return keys(all[len(all)-1])
}

func keys(l *hotlist.List) string {
	var ks []string
	for _, e := range l.Entries {
		ks = append(ks, e.Key)
	}
	slices.Sort(ks)
	return strings.Join(ks, " ")
}

func (tp *tap) wait(t *testing.T, want string) {
	t.Helper()
	redistest.Eventually(t, patience, "the list "+want, func() bool { return tp.last() == want })
}

func TestPublisherSendsFullListsInOrder(t *testing.T) {
	s := redistest.Start(t)
	tp := listen(t, s.Client(), hotlist.DefaultChannel)
	p := start(t, Config{Connection: conn(s), Retain: true, Interval: 200 * time.Millisecond, TTL: 10 * time.Second})

	p.Publish(listOf("a"))
	tp.wait(t, "a")
	p.Publish(listOf("a", "b"))
	tp.wait(t, "a b")
	n := len(tp.all())
	redistest.Eventually(t, patience, "renewed every interval", func() bool { return len(tp.all()) >= n+3 })

	retained, err := hotlist.Decode([]byte(s.Do("GET", "hotsniff:list:node-1")))
	if err != nil || keys(retained) != "a b" {
		t.Errorf("retained list %+v, %v", retained, err)
	}
	if ttl := s.Do("PTTL", "hotsniff:list:node-1"); ttl == "-1" || ttl == "-2" {
		t.Errorf("the retained list has PTTL %s", ttl)
	}
	if got := s.Do("ZRANGE", "hotsniff:nodes", "0", "-1"); got != "[node-1]" {
		t.Errorf("node index %s", got)
	}

	p.stop()
	tp.wait(t, "")
	if l, err := hotlist.Decode([]byte(s.Do("GET", "hotsniff:list:node-1"))); err != nil || len(l.Entries) != 0 {
		t.Errorf("retained after the end: %+v, %v", l, err)
	}
	all := tp.all()
	for i, l := range all {
		if l.Node != "node-1" || l.TTLMs != 10000 || l.EpochMs != all[0].EpochMs || l.Seq != uint64(i+1) {
			t.Fatalf("list %d has header %+v", i, l)
		}
	}
	st := p.Stats()
	if st.Results[ResultOK] != uint64(len(all)) || st.Receivers != 1 || st.DurationCount != uint64(len(all)) || st.Retained[ResultOK] != uint64(len(all)) {
		t.Errorf("after %d lists: %+v", len(all), st)
	}
	if log := p.log.String(); log != "" {
		t.Errorf("nothing went wrong, yet it logs %s", log)
	}
}

func TestPublishNeverBlocksAndKeepsTheNewest(t *testing.T) {
	p, err := New(Config{Node: "n", Connection: Connection{URL: "redis://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.client.Close()
	for _, k := range []string{"a", "b", "c"} {
		p.Publish(listOf(k)) // nobody takes them
	}
	if got := keys(<-p.box); got != "c" {
		t.Errorf("the mailbox holds %q", got)
	}
	if got := p.Stats().Replaced; got != 2 {
		t.Errorf("replaced = %d, want 2", got)
	}
}

func TestAtMostOneListEachGap(t *testing.T) {
	s := redistest.Start(t)
	tp := listen(t, s.Client(), hotlist.DefaultChannel)
	p := start(t, Config{Connection: conn(s), MinGap: 300 * time.Millisecond})
	for i := range 40 { // 40 changes in a good 0.4 s
		p.Publish(listOf("key", strings.Repeat("x", i)))
		time.Sleep(10 * time.Millisecond)
	}
	tp.wait(t, keys(listOf("key", strings.Repeat("x", 39))))
	all := tp.all()
	for i := 1; i < len(all); i++ { // made at least that far apart, whatever the machine does
		if d := all[i].AtMs - all[i-1].AtMs; d < 299 {
			t.Errorf("lists %d and %d are %d ms apart", i-1, i, d)
		}
	}
}

func TestOldNodesLeaveTheIndex(t *testing.T) {
	s := redistest.Start(t)
	now := time.Now()
	s.Do("ZADD", "hotsniff:nodes", now.Add(-2*nodeGrace).UnixMilli(), "dead", now.Add(-time.Second).UnixMilli(), "late")
	tp := listen(t, s.Client(), hotlist.DefaultChannel)
	p := start(t, Config{Connection: conn(s), Retain: true})
	p.Publish(listOf("a"))
	tp.wait(t, "a")
	redistest.Eventually(t, patience, "rid of the dead node", func() bool {
		return s.Do("ZRANGE", "hotsniff:nodes", "0", "-1") == "[late node-1]"
	})
}

func TestOversizedListLosesItsTail(t *testing.T) {
	s := redistest.Start(t)
	tp := listen(t, s.Client(), hotlist.DefaultChannel)
	p := start(t, Config{Connection: conn(s)})
	var ks []string
	for i := range 600 {
		ks = append(ks, strings.Repeat("\xff", 1000)+string(rune('A'+i)))
	}
	p.Publish(listOf(ks...))
	redistest.Eventually(t, patience, "published", func() bool { return len(tp.all()) > 0 })
	if got := len(tp.all()[0].Entries); got == 0 || got >= 600 {
		t.Errorf("%d entries", got)
	}
	if p.Stats().Truncated == 0 {
		t.Error("nothing counted")
	}
}

func TestLocalAddrsAreThoseTheServerSees(t *testing.T) {
	s := redistest.Start(t)
	p := start(t, Config{Connection: conn(s), Manual: true})
	p.Publish(listOf("a"))
	redistest.Eventually(t, patience, "a connection for commands and one that listens", func() bool {
		return len(p.LocalAddrs()) >= 2 && p.Stats().Results[ResultOK] > 0
	})
	clients := s.Do("CLIENT", "LIST")
	for _, ap := range p.LocalAddrs() {
		if !strings.Contains(clients, "addr="+ap.String()) {
			t.Errorf("%v is not among %s", ap, clients)
		}
		if ap.Addr() != netip.MustParseAddr("127.0.0.1") {
			t.Errorf("address %v", ap)
		}
	}
	p.stop()
	if got := p.LocalAddrs(); len(got) != 0 {
		t.Errorf("after the end: %v", got)
	}
}

func TestEventFromDetectorToSubscriberIsOneMessage(t *testing.T) {
	s := redistest.Start(t)
	tp := listen(t, s.Client(), hotlist.DefaultChannel)
	p := start(t, Config{Connection: conn(s)})
	l := listOf("a")
	for range 50 { // the pipeline hands over every tick; figures alone are no change
		c := *l
		c.AccessesPerSecond++
		l = &c
		p.Publish(l)
		time.Sleep(5 * time.Millisecond)
	}
	tp.wait(t, "a")
	if n := len(tp.all()); n != 1 {
		t.Errorf("%d messages for one change", n)
	}
}

func TestNewRefuses(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"no node", Config{}, "node name"},
		{"no address", Config{Node: "n"}, "no address"},
		{"password in the url", Config{Node: "n", Connection: Connection{URL: "redis://u:s3cret@h"}}, "must not hold a password"},
		{"url that does not parse", Config{Node: "n", Connection: Connection{URL: "redis://u:s3cret/@h"}}, "not a URL"},
		{"scheme", Config{Node: "n", Connection: Connection{URL: "http://h"}}, "scheme"},
		{"database", Config{Node: "n", Connection: Connection{URL: "redis://h/s3cret"}}, "database"},
		{"database of a cluster", Config{Node: "n", Connection: Connection{URL: "redis://h/1", Cluster: true}}, "database 0"},
		{"several addresses", Config{Node: "n", Connection: Connection{URL: "redis://h", Addrs: []string{"i"}}}, "cluster or sentinel_master"},
		{"tls files without tls", Config{Node: "n", Connection: Connection{URL: "redis://h", TLS: TLSFiles{CAFile: "x"}}}, "rediss"},
		{"ca that is missing", Config{Node: "n", Connection: Connection{URL: "rediss://h", TLS: TLSFiles{CAFile: filepath.Join(dir, "no")}}}, "tls ca"},
		{"ca that is none", Config{Node: "n", Connection: Connection{URL: "rediss://h", TLS: TLSFiles{CAFile: empty}}}, "no certificate"},
		{"password file that is missing", Config{Node: "n", Connection: Connection{URL: "redis://h", PasswordFile: filepath.Join(dir, "no")}}, "password file"},
		{"password file that is empty", Config{Node: "n", Connection: Connection{URL: "redis://h", PasswordFile: empty}}, "is empty"},
		{"password file without end", Config{Node: "n", Connection: Connection{URL: "redis://h", PasswordFile: "/dev/zero"}}, "too large"},
		{"ttl below interval", Config{Node: "n", Connection: Connection{URL: "redis://h"}, Interval: time.Minute, TTL: time.Second}, "shorter"},
		{"ttl beyond the format", Config{Node: "n", Connection: Connection{URL: "redis://h"}, TTL: time.Hour}, "more than"},
	} {
		p, err := New(tt.cfg)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: error %v, want %q in it", tt.name, err, tt.want)
		}
		if p != nil {
			p.client.Close()
		}
	}
}

func TestAddressesGetThePortOfTheirKind(t *testing.T) {
	f := func(c Connection, want ...string) {
		t.Helper()
		o, err := universal(c)
		if err != nil || !slices.Equal(o.Addrs, want) {
			t.Errorf("%+v: %v, %v; want %v", c, o, err, want)
		}
	}
	f(Connection{URL: "redis://h"}, "h:6379")
	f(Connection{URL: "redis://[::1]:7000/3"}, "[::1]:7000")
	f(Connection{URL: "unix:///run/redis.sock?db=2"}, "/run/redis.sock")
	f(Connection{URL: "redis://a", Addrs: []string{"b", "c:7"}, SentinelMaster: "m"}, "a:26379", "b:26379", "c:7")
	f(Connection{Addrs: []string{"::1", "[::2]:7"}, Cluster: true}, "[::1]:6379", "[::2]:7")
}

func TestBackoffStaysWithinItsBounds(t *testing.T) {
	for n := range 100 {
		d := backoff(n, DefaultMaxBackoff)
		if d < minBackoff/2 || d > DefaultMaxBackoff {
			t.Errorf("after %d failures: %v", n, d)
		}
		if n > 10 && d < DefaultMaxBackoff/2 {
			t.Errorf("after %d failures only %v", n, d)
		}
	}
}

func TestManualNoteIsSmallJSON(t *testing.T) {
	e := ManualEntry{Key: "k", Op: OpPin, UntilMs: 5, Rule: Rule{Action: hotlist.ActionReplicate, ActionSet: true, TTLMs: 9, Copies: 4}}
	b, err := e.encode()
	if err != nil || !json.Valid(b) {
		t.Fatalf("%s, %v", b, err)
	}
	if got, ok := decodeManual("k", string(b)); !ok || got != e {
		t.Errorf("%s decodes to %+v, %v", b, got, ok)
	}
}
