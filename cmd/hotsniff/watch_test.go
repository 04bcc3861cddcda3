package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/hotsniff/hotsniff/actions"
	"github.com/hotsniff/hotsniff/hotlist"
	"github.com/hotsniff/hotsniff/internal/config"
	"github.com/hotsniff/hotsniff/internal/report"
)

var watchNow = time.UnixMilli(1_800_000_000_000)

func hotKey(key string, state hotlist.State, share float64) *hotlist.Hot {
	return &hotlist.Hot{Key: key, Port: 6379, State: state, Share: share, ShareLow: share / 2, NodeShare: share, AccessesPerSecond: 100,
		Nodes: 2, SinceMs: watchNow.UnixMilli() - 65_000, Action: hotlist.ActionLocalize, Reason: hotlist.ReasonReadHot, TTL: 2 * time.Second}
}

// hostile are keys that would move the cursor, set the title, hide or reorder
// text, or break lines.
var hostile = []string{"\x1b[2J\x1b[H", "\x1b]0;owned\a", "a\r\nb\tc", "\u202egnp", "\u009b31m", "\xff\x00", "", "e\u0301", "\u200b"}

func testClient(t *testing.T) *actions.Client {
	t.Helper()
	c, err := actions.Connect(actions.Connection{URL: "redis://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestListChangesAreEvents(t *testing.T) {
	var c listChanges
	f := func(want string, list ...*hotlist.Hot) {
		t.Helper()
		var got []string
		for _, ev := range c.next(list, watchNow) {
			got = append(got, ev.Event+" "+ev.Key)
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("got %s; want %s", s, want)
		}
	}
	a, b := hotKey("a", hotlist.StateHot, .3), hotKey("b", hotlist.StateCooling, .2)
	f("")
	f("hot a, cooling b", a, b)
	f("", a, b)
	f("cooling a", hotKey("a", hotlist.StateCooling, .1), b)
	f("gone b, hot a", hotKey("a", hotlist.StatePinned, .1))
	f("gone a, hot c, hot d", hotKey("c", hotlist.StateHot, .1), hotKey("d", hotlist.StateHot, .1))
	f("gone c, gone d")
}

func TestWatchWritesEventLines(t *testing.T) {
	var out, errOut bytes.Buffer
	p := jsonPrinter{out: &out, trouble: troublePrinter{&errOut, testClient(t), nil}}
	var list []*hotlist.Hot
	for _, k := range hostile {
		list = append(list, hotKey(k, hotlist.StateHot, .25))
	}
	if err := p.print(list, hotlist.Status{}, watchNow); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != len(hostile) {
		t.Fatalf("got %d lines; want %d", len(lines), len(hostile))
	}
	for i, line := range lines {
		if s := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }); s >= 0 {
			t.Errorf("%q has a character that a terminal may obey", line)
		}
		var ev report.Event
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		key := report.Key{Key: ev.Key, KeyBase64: ev.KeyBase64}
		if string(key.Raw()) != hostile[i] {
			t.Errorf("got key %q; want %q", key.Raw(), hostile[i])
		}
		if ev.Schema != "hotsniff.event/v1" || ev.Event != "hot" || ev.Port != 6379 || ev.Share != .25 || ev.ShareLow != .125 ||
			ev.ShareHigh != nil || ev.Nodes != 2 || ev.Action != "localize" || ev.TTLMs != 2000 || !ev.At.Equal(watchNow) {
			t.Errorf("got %s", line)
		}
	}
}

func TestNothingInAKeyControlsTheTerminal(t *testing.T) {
	var list []*hotlist.Hot
	for _, k := range hostile {
		list = append(list, hotKey(k, hotlist.StateHot, .25))
	}
	s := hotlist.Status{Connected: true, LastError: errors.New("ERR \x1b]0;owned\a\r\nsecond line"), Nodes: []hotlist.NodeStatus{{Node: "\x1b[2J", Stale: true}}}
	text := watchTable(list, watchNow, len(list)) + watchStatus(testClient(t), list, s)
	for _, r := range text {
		if r != '\n' && r != ' ' && !unicode.IsPrint(r) {
			t.Errorf("%U is in the table:\n%q", r, text)
		}
	}
	if n := strings.Count(text, "\n"); n != 1+len(list)+2 {
		t.Errorf("got %d lines; want one a key beside header and status:\n%s", n, text)
	}
	var b bytes.Buffer
	if err := writeFrame(&b, text, true); err != nil {
		t.Fatal(err)
	}
	frame := b.String()
	for _, ours := range []string{screenClear, frameBegin, wrapOff, wrapOn, "\x1b[K", frameEnd} {
		frame = strings.ReplaceAll(frame, ours, "")
	}
	if frame != text {
		t.Errorf("got %q; want the text and our own sequences only", frame)
	}
}

func TestWatchTable(t *testing.T) {
	list := []*hotlist.Hot{hotKey("star", hotlist.StateHot, .256), hotKey("b", hotlist.StateCooling, .1), hotKey("c", hotlist.StatePinned, 0)}
	text := watchTable(list, watchNow, 2)
	for _, want := range []string{"KEY ", "star ", "25.60%", "cooling", "1m5s", "localize", "read-hot", "2s", "… 1 more"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "pinned") {
		t.Errorf("more than 2 rows in\n%s", text)
	}
	s := hotlist.Status{Connected: true, Age: 3500 * time.Millisecond, Nodes: []hotlist.NodeStatus{{Node: "a"}, {Node: "b", Stale: true}}}
	if got, want := watchStatus(testClient(t), list, s), "\n3 hot keys at 2 nodes, 1 of them silent; newest list 3s ago\n"; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
}

func TestATableIsPrintedOncePerChange(t *testing.T) {
	var out, errOut bytes.Buffer
	p := tablePrinter{out: &out, trouble: troublePrinter{&errOut, testClient(t), nil}}
	list := []*hotlist.Hot{hotKey("a", hotlist.StateHot, .3)}
	broken := hotlist.Status{LastError: errors.New("EOF")}
	for _, step := range []struct {
		list []*hotlist.Hot
		s    hotlist.Status
	}{{nil, hotlist.Status{}}, {list, hotlist.Status{}}, {list, broken}, {list, broken}, {list, hotlist.Status{}}, {nil, hotlist.Status{}}} {
		if err := p.print(step.list, step.s, watchNow); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), "KEY "); n != 3 {
		t.Errorf("got %d tables; want 3: none yet, one key, gone\n%s", n, &out)
	}
	if got, want := errOut.String(), "hotsniff: redis: EOF; trying again\nhotsniff: redis: back\n"; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
}

func TestSystemdCredentialsAreTheDefault(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	if c := (&redisFlags{}).connection(); c.PasswordFile != "" || c.SentinelPasswordFile != "" {
		t.Errorf("got %q, %q where there are no credentials", c.PasswordFile, c.SentinelPasswordFile)
	}
	for _, name := range []string{"redis-password", "sentinel-password"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := (&redisFlags{SentinelFile: "/given"}).connection()
	if c.PasswordFile != filepath.Join(dir, "redis-password") || c.SentinelPasswordFile != "/given" {
		t.Errorf("got %q, %q; want the credential, and the file that was given", c.PasswordFile, c.SentinelPasswordFile)
	}
}

func TestManualEntriesOfTheFile(t *testing.T) {
	f, err := config.Parse("h.yml", []byte("pinned:\n  - key: sale\n    from: 2026-11-27T08:00:00Z\n    action: none\n    ttl: 3s\nbanned: [noise]\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := manualEntries(f)
	want := []actions.ManualEntry{
		{Key: "sale", Op: actions.OpPin, FromMs: time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC).UnixMilli(), Rule: actions.Rule{ActionSet: true, TTLMs: 3000}},
		{Key: "noise", Op: actions.OpBan},
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v; want %+v", got, want)
	}
	if manualEntries(nil) != nil {
		t.Error("entries without a file")
	}
}
