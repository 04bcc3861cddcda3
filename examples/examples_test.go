// Package examples holds small subscribers in other languages; this test runs
// them against a real server and the publisher of the daemon.
package examples

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hotsniff/hotsniff/actions"
	"github.com/hotsniff/hotsniff/hotlist"
	"github.com/hotsniff/hotsniff/hotlist/redistest"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

// patience is for what should take a moment, on a machine that is busy.
const patience = 60 * time.Second

func TestNodeSubscriber(t *testing.T) {
	node, npm := testkit.Program(t, "node"), testkit.Program(t, "npm")
	dir := copied(t, "node", "package.json", "package-lock.json", "subscriber.mjs")
	ci := exec.Command(npm, "ci", "--no-audit", "--no-fund", "--prefer-offline", "--ignore-scripts")
	ci.Dir = dir
	if out, err := ci.CombinedOutput(); err != nil {
		for _, code := range []string{"ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ENETUNREACH"} {
			if bytes.Contains(out, []byte(code)) {
				testkit.Missing(t, "npm cannot reach its registry (%s); this test needs the package redis", code)
			}
		}
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	follows(t, node, filepath.Join(dir, "subscriber.mjs"))
}

func TestPythonSubscriber(t *testing.T) {
	python := testkit.Program(t, "python3")
	follows(t, python, filepath.Join(copied(t, "python", "subscriber.py"), "subscriber.py"))
}

// copied returns a directory of the test's own with these files of an example:
// nothing is installed into the source tree, and go test sees what it depends on.
func copied(t *testing.T, example string, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(example, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestLockNamesNoRegistry: whoever installs decides where the packages come
// from; their hashes are in the file.
func TestLockNamesNoRegistry(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("node", "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte("://")) || !bytes.Contains(b, []byte(`"integrity": "sha512-`)) {
		t.Error("package-lock.json names a host or lacks hashes: npm config set omit-lockfile-registry-resolved true")
	}
}

// line is one key of what a subscriber prints.
type line struct {
	Key    string  `json:"key"`
	Base64 string  `json:"key_base64"`
	State  string  `json:"state"`
	Action string  `json:"action"`
	Share  float64 `json:"share"`
}

// follows plays what happens to a list to a subscriber and compares every
// line that it prints.
func follows(t *testing.T, command ...string) {
	s := redistest.Start(t)
	a := publish(t, s, "a")
	star := hotlist.Entry{Key: "star é", Port: 6379, Share: 0.5, AccessesPerSecond: 500, Action: hotlist.ActionLocalize, TTLMs: 100}
	binary := hotlist.Entry{Key: "bin\xff", Port: 6379, Share: 0.25, AccessesPerSecond: 250, Action: hotlist.ActionReplicate, Copies: 4, TTLMs: 100}
	a.Publish(&hotlist.List{AccessesPerSecond: 1000, Entries: []hotlist.Entry{star, binary}})
	retained := func(node string) string { return s.Do("GET", hotlist.ListKeyPrefix+node) }
	redistest.Eventually(t, patience, "retained", func() bool { return strings.Contains(retained("a"), "star") })
	// What must not count: a retained list past its ttl, names that are none.
	s.Do("SET", hotlist.ListKeyPrefix+"stale", encode(t, "stale", 1, time.Now().Add(-time.Minute), 15000, "ghost"))
	s.Do("ZADD", hotlist.NodesKey, time.Now().Add(time.Minute).UnixMilli(), "stale", 1, "bad\nname", 2, "nothing")

	lines := run(t, append(command, s.URL(""))...)
	starA := line{Key: "star é", State: "hot", Action: "localize", Share: 0.5}
	bin := line{Key: `bin\xff`, Base64: "Ymlu/w==", State: "hot", Action: "replicate", Share: 0.25}
	expect(t, lines, "the retained lists", starA, bin)

	// A second node sees three times the traffic; its advice goes before.
	b := publish(t, s, "b")
	limited := star
	limited.Share, limited.AccessesPerSecond, limited.Action = 0.3, 900, hotlist.ActionLimit
	b.Publish(&hotlist.List{AccessesPerSecond: 3000, Entries: []hotlist.Entry{limited}})
	starAB := line{Key: "star é", State: "hot", Action: "limit", Share: 0.35}
	bin.Share = 0.0625
	expect(t, lines, "two nodes", starAB, bin)

	// Nothing of this changes the list.
	for _, junk := range []string{"", "{", "null", "[]", `{"schema":"hotsniff.list/v2","node":"a"}`, `{"schema":"hotsniff.list/v1"}`,
		`{"schema":"hotsniff.manual/v1","at":1}`, `{"schema":"hotsniff.drop/v1","from":"x","all":true}`,
		encode(t, "a", 1, time.Now(), 15000, "ghost"), // older than what it said before
		strings.Replace(encode(t, "d", 1, time.Now(), 15000, "ghost"), `"ttl_ms":15000`, `"ttl_ms":0`, 1),
		strings.Replace(encode(t, "d", 1, time.Now(), 15000, "ghost"), `"ghost"`, `"`+strings.Repeat("g", 1025)+`"`, 1),
		strings.Replace(encode(t, "d", 1, time.Now(), 15000, "ghost"), `"key":"ghost"`, `"key":"ghost","key_base64":"?"`, 1),
	} {
		s.Do("PUBLISH", hotlist.DefaultChannel, junk)
	}

	// A node that is never heard of again: its list lapses, then its keys.
	// Its clock is an hour slow, which does not matter on the channel.
	s.Do("PUBLISH", hotlist.DefaultChannel, encode(t, "c", 1, time.Now().Add(-time.Hour), 700, "short"))
	short := line{Key: "short", State: "hot", Action: "none", Share: 0.0122}
	starABC := starAB
	starABC.Share, bin.Share = 0.3415, 0.061
	expect(t, lines, "a third node", starABC, bin, short)
	bin.Share = 0.0625
	expect(t, lines, "the third node's list lapsed", starAB, bin)

	// Cut off; what changes meanwhile is in the retained list.
	s.Do("CLIENT", "KILL", "TYPE", "pubsub")
	cooling := star
	cooling.State = hotlist.StateCooling
	a.Publish(&hotlist.List{AccessesPerSecond: 1000, Entries: []hotlist.Entry{cooling}})
	expect(t, lines, "cut off", starAB)

	// A pin goes before all advice; nodes that stop say so.
	pinned := hotlist.Entry{Key: "pin", State: hotlist.StatePinned, Action: hotlist.ActionAggregate, TTLMs: 100}
	a.Publish(&hotlist.List{AccessesPerSecond: 1000, Entries: []hotlist.Entry{star, pinned}})
	expect(t, lines, "pinned", starAB, line{Key: "pin", State: "pinned", Action: "aggregate"})
	b.stop()
	starA.Share = 0.125 // b's traffic counts until its last, empty list lapses
	expect(t, lines, "b stopped", starA, line{Key: "pin", State: "pinned", Action: "aggregate"})
	a.stop()
	expect(t, lines, "a stopped")
}

type publisher struct {
	*actions.Publisher
	stop func() // ends it; may be called twice
}

func publish(t *testing.T, s *redistest.Server, node string) publisher {
	t.Helper()
	p, err := actions.New(actions.Config{Connection: actions.Connection{URL: s.URL("")}, Node: node, Retain: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { p.Run(ctx) })
	stop := func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return publisher{p, stop}
}

func encode(t *testing.T, node string, seq uint64, at time.Time, ttlMs int64, key string) string {
	t.Helper()
	b, err := hotlist.Encode(&hotlist.List{Node: node, EpochMs: 1, Seq: seq, AtMs: at.UnixMilli(), TTLMs: ttlMs, AccessesPerSecond: 100,
		Entries: []hotlist.Entry{{Key: key, Share: 0.5, AccessesPerSecond: 50, TTLMs: 100}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// run starts a subscriber and returns the lines that it prints.
func run(t *testing.T, command ...string) <-chan string {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 100)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			lines <- in.Text()
		}
	})
	t.Cleanup(func() {
		cmd.Process.Kill()
		wg.Wait()
		cmd.Wait()
		if t.Failed() {
			t.Logf("the subscriber said:\n%s", log.String())
		}
	})
	return lines
}

// expect compares the next line.
func expect(t *testing.T, lines <-chan string, what string, want ...line) {
	t.Helper()
	select {
	case text, ok := <-lines:
		if !ok {
			t.Fatalf("%s: the subscriber ended", what)
		}
		var got []line
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%s: %v in %q", what, err, text)
		}
		if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: got %s; want %+v", what, text, want)
		}
	case <-time.After(patience):
		t.Fatalf("%s: nothing came; want %+v", what, want)
	}
}
