package top

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/hotsniff/hotsniff/internal/report"
)

// sgr matches the looks that this package draws with.
var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

// keysOf returns the first words of the rows on the screen.
func keysOf(m *Model) []string {
	var out []string
	for _, k := range m.rows() {
		out = append(out, k.Key)
	}
	return out
}

func smallSample(at time.Time, keys ...report.Key) *Sample {
	slow, fast := testReport(at, 60, 0), testReport(at, 5, 0)
	slow.Keys, fast.Keys = keys, keys
	return &Sample{Slow: slow, Fast: fast}
}

func TestEveryColumnSorts(t *testing.T) {
	a, b, c := testKey("a", 0.3, "none"), testKey("b", 0.2, "hot"), testKey("c", 0.1, "cooling")
	a.AccessesPerSecond, b.AccessesPerSecond, c.AccessesPerSecond = 1, 3, 2
	a.Reads, a.Writes, b.Reads, b.Writes, c.Reads, c.Writes = 0, 9, 9, 0, 5, 5
	a.RequestBytes, a.ReplyBytes, b.ReplyBytes, c.ReplyBytes = 0, 0, 1, 1<<40
	a.Clients, b.Clients, c.Clients = 2, 1, 3
	a.TopClient, c.TopClient = nil, &report.TopClient{Address: "x", Share: 1}
	a.Commands, b.Commands, c.Commands = map[string]uint64{"SET": 1}, map[string]uint64{"GET": 1}, map[string]uint64{"HGET": 1}
	younger := testStart.Add(-time.Minute)
	c.Since = &younger
	m := New(Options{})
	m.Update(SampleMsg{smallSample(testStart, a, b, c)})
	f := func(key, want string) {
		t.Helper()
		press(m, key)
		if got := strings.Join(keysOf(m), ""); got != want {
			t.Errorf("after %s: got %s; want %s", key, got, want)
		}
	}
	f("2", "cba") // it is the order already: the other way round
	f("2", "abc")
	f("1", "abc")
	f("3", "bca")
	f("4", "acb")
	f("5", "cba")
	f("6", "cab")
	f("7", "cba")
	f("8", "bca")
	f("9", "bca")
	f("0", "cba")
	f("r", "abc")
	f("s", "abc") // round again to the first column: the key
	f("S", "cba")
	f("right", "abc")
	f("left", "cba")
}

func TestFilterIsLiveAndKept(t *testing.T) {
	m := testModel(Options{Plain: true})
	press(m, "/", "P", "r")
	if got := keysOf(m); len(got) != 0 {
		t.Errorf("a capital matches any case: %v", got)
	}
	press(m, "ctrl+u", "p", "r", "o", "d", "q", "backspace")
	if got := keysOf(m); len(got) != 1 || got[0] != "product:1" {
		t.Errorf("got %v; want product:1", got)
	}
	press(m, "enter", "w") // a key does something else again
	if !m.fast || !strings.Contains(frame(m, 80, 24), "filter prod") {
		t.Errorf("the filter is not kept:\n%s", frame(m, 80, 24))
	}
	press(m, "esc")
	if got := keysOf(m); len(got) != 64 {
		t.Errorf("got %d keys after esc; want 64", len(got))
	}
	press(m, "/", "n", "o", "p", "e")
	if !strings.Contains(frame(m, 80, 24), "none of 64 keys") {
		t.Errorf("got\n%s\nwant why there is nothing", frame(m, 80, 24))
	}
	m.Update(tea.PasteMsg{Content: strings.Repeat("x\n", 1000)})
	if len(m.filter) != maxFilter {
		t.Errorf("a filter of %d characters; want %d at most", len(m.filter), maxFilter)
	}
}

func TestPauseKeepsWhatIsShownAndGoesOnWithNow(t *testing.T) {
	m := New(Options{Plain: true})
	a, b := testKey("a", 0.3, "none"), testKey("b", 0.2, "none")
	m.Update(SampleMsg{smallSample(testStart, a)})
	press(m, "space")
	m.Update(SampleMsg{smallSample(testStart.Add(time.Second), b)})
	if got := frame(m, 80, 24); !strings.Contains(got, "PAUSED") || keysOf(m)[0] != "a" {
		t.Errorf("got\n%s\nwant a, paused", got)
	}
	press(m, "space")
	if got := frame(m, 80, 24); strings.Contains(got, "PAUSED") || keysOf(m)[0] != "b" {
		t.Errorf("got\n%s\nwant b", got)
	}
}

func TestFrozenRowsKeepTheirOrderAndNewOnesComeBelow(t *testing.T) {
	m := New(Options{Plain: true})
	key := func(name string, share float64) report.Key { return testKey(name, share, "none") }
	m.Update(SampleMsg{smallSample(testStart, key("a", .3), key("b", .2))})
	press(m, "f")
	m.Update(SampleMsg{smallSample(testStart.Add(time.Second), key("c", .5), key("b", .4), key("a", .1))})
	if got := strings.Join(keysOf(m), ""); got != "abc" {
		t.Errorf("got %s; want abc", got)
	}
	press(m, "1") // a new order is frozen anew
	press(m, "r")
	if got := strings.Join(keysOf(m), ""); got != "cba" {
		t.Errorf("got %s; want cba", got)
	}
	press(m, "f", "2")
	if got := strings.Join(keysOf(m), ""); got != "cba" || m.order != nil {
		t.Errorf("got %s; want cba by share", got)
	}
}

func TestTheCursorStaysOnItsKeyAndInSight(t *testing.T) {
	m := New(Options{Plain: true})
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 10}) // 5 rows
	make := func(first int) *Sample {
		var keys []report.Key
		for i := range 20 {
			keys = append(keys, testKey(fmt.Sprintf("key%02d", i), 0.2/float64((i+20-first)%20+1), "none"))
		}
		return smallSample(testStart.Add(time.Duration(first)*time.Second), keys...)
	}
	m.Update(SampleMsg{make(0)})
	cursor := func(want string) {
		t.Helper()
		got := frame(m, m.width, m.height)
		if !strings.Contains(got, "▸"+want) {
			t.Errorf("got\n%s\nwant the cursor at %s", got, want)
		}
	}
	cursor("key00")
	m.Update(SampleMsg{make(3)})
	cursor("key03") // not moved yet: the top row
	press(m, "down", "down")
	cursor("key05")
	m.Update(SampleMsg{make(0)})
	cursor("key05")
	press(m, "pgdown")
	cursor("key10")
	press(m, "end")
	cursor("key19")
	press(m, "down")
	cursor("key19")
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 7})
	cursor("key19")
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 50})
	cursor("key19")
	press(m, "pgup", "home")
	cursor("key00")
	press(m, "/", "1", "9", "enter")
	cursor("key19")
}

func TestDetailFollowsItsKey(t *testing.T) {
	m := testModel(Options{Plain: true})
	press(m, "enter")
	if got := frame(m, 80, 24); m.screen != screenDetail || !strings.Contains(got, "product:1") || !strings.Contains(got, "GET") ||
		!strings.Contains(got, "surely between 25.48% and 26.52%") || !strings.Contains(got, "10.0.0.7 40%") {
		t.Errorf("got\n%s\nwant everything about product:1", got)
	}
	press(m, "down")
	if got := frame(m, 80, 24); !strings.Contains(got, "session:") || !strings.Contains(got, "up to 1200 more") {
		t.Errorf("got\n%s\nwant the next key", got)
	}
	m.Update(SampleMsg{smallSample(testStart.Add(time.Second), testKey("other", .1, "none"))})
	if got := frame(m, 80, 24); !strings.Contains(got, "session:") || !strings.Contains(got, "not among the top keys") {
		t.Errorf("got\n%s\nwant that the key is gone", got)
	}
	press(m, "q")
	if m.screen != screenTable {
		t.Error("q does not leave the detail")
	}
	press(m, "?", "x")
	if m.screen != screenTable {
		t.Error("a key does not leave the help")
	}
}

func TestQuit(t *testing.T) {
	quits := func(m *Model, msg tea.KeyPressMsg) bool {
		_, cmd := m.Update(msg)
		if cmd == nil {
			return false
		}
		_, ok := cmd().(tea.QuitMsg)
		return ok
	}
	m := New(Options{})
	q, ctrlC := tea.KeyPressMsg{Code: 'q', Text: "q"}, tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
	if !quits(m, q) || !quits(m, ctrlC) {
		t.Error("q and ctrl+c do not quit")
	}
	press(m, "/")
	if quits(m, q) || m.filter != "q" {
		t.Error("q in the filter is no text")
	}
	if !quits(m, ctrlC) {
		t.Error("ctrl+c does not quit while the filter is typed")
	}
}

func TestTroubleIsShownUntilItIsOver(t *testing.T) {
	m := testModel(Options{Plain: true})
	m.Update(TroubleMsg{errors.New("no route to host")})
	if got := frame(m, 80, 24); !strings.Contains(got, "not up to date: no route to host") || !strings.Contains(got, "product:1") {
		t.Errorf("got\n%s\nwant the trouble above the last rows", got)
	}
	m.Update(SampleMsg{smallSample(testStart.Add(time.Second), testKey("a", .1, "none"))})
	if got := frame(m, 80, 24); strings.Contains(got, "no route") {
		t.Errorf("got\n%s\nwant no trouble", got)
	}
}

func TestWhatIsNotSeenIsSaid(t *testing.T) {
	m := New(Options{Plain: true})
	f := func(want string) {
		t.Helper()
		if got := frame(m, 80, 24); !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %q", got, want)
		}
	}
	f("waiting for the first packets")
	s := smallSample(testStart)
	s.Slow.Capture = report.Capture{Packets: 1000, Dropped: 10, Connections: 4, EncryptedConnections: 4, Gaps: 2, DecodeErrors: map[string]uint64{"bulk_length": 7}}
	s.Slow.SampleEvery = 8
	m.Update(SampleMsg{s})
	f("every connection is encrypted")
	f("1:8 sampled")
	f("10 (1.0%) dropped")
	f("100% encrypted")
	f("not decoded: bulk_length 7")
	s = smallSample(testStart.Add(time.Second))
	s.Slow.Capture = report.Capture{}
	m.Update(SampleMsg{s})
	f("no packet came to the port")
	s.Warning = "the daemon's capture makes no progress"
	m.Update(SampleMsg{s})
	f("makes no progress")
}

func TestHistoryIsBounded(t *testing.T) {
	var h history
	for i := range 300 {
		r := &report.Report{To: testStart.Add(time.Duration(i) * 100 * time.Millisecond)}
		for j := range 200 {
			r.Keys = append(r.Keys, report.Key{Key: fmt.Sprintf("%d:%d", i/20, j), Share: 0.1})
		}
		h.add(r)
		if len(h.series) > maxSeries {
			t.Fatalf("%d keys; want %d at most", len(h.series), maxSeries)
		}
	}
	for id, s := range h.series {
		if len(s.points) > maxPoints {
			t.Fatalf("%v has %d points", id, len(s.points))
		}
	}
	h.add(&report.Report{To: testStart.Add(10 * time.Minute)})
	if len(h.series) != 0 {
		t.Errorf("%d keys after ten minutes without them; want none", len(h.series))
	}
}

func TestHistoryBuckets(t *testing.T) {
	var h history
	id := keyID{0, "k", ""}
	at := func(s int) time.Time { return testStart.Add(time.Duration(s) * time.Second) }
	add := func(s int, keys ...report.Key) { h.add(&report.Report{To: at(s), Keys: keys}) }
	f := func(end, n int, want ...float64) {
		t.Helper()
		if got := h.buckets(id, at(end), n); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v; want %v", got, want)
		}
	}
	f(60, 3, -1, -1, -1)
	add(30, report.Key{Key: "k", Share: 0.3})
	f(60, 3, -1, 0.3, 0.3)
	add(45, report.Key{Key: "k", Share: 0.1})
	add(50)
	f(60, 3, -1, 0.3, 0.1)
	f(60, 6, -1, -1, 0.3, 0.3, 0.1, 0.1)
	f(60, 12, -1, -1, -1, -1, -1, 0.3, 0.3, 0.3, 0.1, 0, 0, 0)
	add(50, report.Key{Key: "k", Share: 9}) // not newer: left out
	f(60, 3, -1, 0.3, 0.1)
	add(-600, report.Key{Key: "k", Share: 0.5}) // another run
	f(-600, 2, -1, 0.5)
}
