package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/internal/report"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

// recall is the part of the visible key accesses that must be found in a
// damaged capture.
func recall(name string) float64 {
	if name == "hotmix-pipelined-snap96.pcap" {
		return 0.90 // 30 bytes of payload a packet: most requests are cut
	}
	return 0.98
}

// TestCorpus reads every capture of the corpus and compares with its truth: a
// new capture with a truth file is a new test.
func TestCorpus(t *testing.T) {
	captures, err := testkit.Corpus()
	if err != nil {
		t.Fatal(err)
	}
	if len(captures) < 20 {
		t.Fatalf("got %d captures; want the corpus in testdata/captures", len(captures))
	}
	for _, c := range captures {
		t.Run(c.Name, func(t *testing.T) {
			got := readWhole(t, c.Path, c.Truth.Ports)
			switch truth := &c.Truth; {
			case truth.Full != nil:
				checkDamaged(t, got, truth, recall(c.Name))
			case len(truth.TolerateRange) == 2:
				checkTolerated(t, got, truth)
			default:
				checkExact(t, got, truth)
			}
			for key := range got.keys {
				for _, bad := range c.Truth.MustNotAppear {
					if strings.Contains(key, strings.TrimSuffix(bad, "*")) {
						t.Errorf("key %q must not appear", key)
					}
				}
			}
		})
	}
}

// counted is what the engine made of a capture, with keys as truth files
// write them.
type counted struct {
	requests, accesses int
	commands, keys     map[string]int
}

func readWhole(t *testing.T, path string, ports []uint16) counted {
	t.Helper()
	set, err := capture.ParsePorts(strings.Trim(strings.Join(strings.Fields(fmt.Sprint(ports)), ","), "[]"))
	if err != nil {
		t.Fatal(err)
	}
	src, err := capture.OpenFiles([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	e, err := New(Config{Ports: set, Whole: true, Top: AllKeys}, src)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return count(e.Latest().Report("test", 0))
}

func count(r *report.Report) counted {
	c := counted{requests: int(r.Requests), accesses: int(r.Accesses), commands: map[string]int{}, keys: map[string]int{}}
	for name, n := range r.Commands {
		c.commands[name] = int(n)
	}
	for i := range r.Keys {
		c.keys[truthKey(&r.Keys[i])] += int(r.Keys[i].Accesses)
	}
	return c
}

// truthKey writes a key as truth files do: printable ASCII as it is, all else
// as \xNN.
func truthKey(k *report.Key) string {
	var b strings.Builder
	for _, c := range k.Raw() {
		if c >= 0x20 && c < 0x7f {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}

// known folds the commands that are outside the table into OTHER.
func known(truth *testkit.Counts, got map[string]int) map[string]int {
	out, other := map[string]int{}, truth.Unknown
	for name, n := range truth.Commands {
		if _, ok := got[name]; !ok && other >= n {
			other -= n
			out["OTHER"] += n
			continue
		}
		out[name] = n
	}
	return out
}

func checkExact(t *testing.T, got counted, truth *testkit.Truth) {
	t.Helper()
	if got.requests != truth.Requests || got.accesses != truth.KeyAccesses {
		t.Errorf("got %d requests, %d accesses; want %d, %d", got.requests, got.accesses, truth.Requests, truth.KeyAccesses)
	}
	diff(t, "command", got.commands, known(&truth.Counts, got.commands))
	if truth.KeysCut == 0 {
		diff(t, "key", got.keys, truth.Keys)
		return
	}
	for key, n := range truth.Keys {
		if got.keys[key] != n {
			t.Errorf("key %q: got %d; want %d", key, got.keys[key], n)
		}
	}
	if len(got.keys) != truth.DistinctKeys {
		t.Errorf("got %d keys; want %d", len(got.keys), truth.DistinctKeys)
	}
}

func diff(t *testing.T, what string, got, want map[string]int) {
	t.Helper()
	names := maps.Clone(got)
	maps.Copy(names, want)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if got[name] != want[name] {
			t.Errorf("%s %q: got %d; want %d", what, name, got[name], want[name])
		}
	}
}

func checkDamaged(t *testing.T, got counted, truth *testkit.Truth, part float64) {
	t.Helper()
	for key, n := range got.keys {
		if n > truth.Full.Keys[key] {
			t.Errorf("key %q: got %d; at most %d were sent", key, n, truth.Full.Keys[key])
		}
	}
	for name, n := range got.commands {
		if n > truth.Full.Commands[name] {
			t.Errorf("command %q: got %d; at most %d were sent", name, n, truth.Full.Commands[name])
		}
	}
	if want := part * float64(truth.Visible.KeyAccesses); float64(got.accesses) < want {
		t.Errorf("got %d accesses; want %.1f of the %d visible", got.accesses, want, truth.Visible.KeyAccesses)
	}
}

// checkTolerated is for captures in which no decoder can know everything: the
// truth gives the range.
func checkTolerated(t *testing.T, got counted, truth *testkit.Truth) {
	t.Helper()
	if lo, hi := truth.TolerateRange[0], truth.TolerateRange[1]; got.requests < lo || got.requests > hi {
		t.Errorf("got %d requests; want %d to %d", got.requests, lo, hi)
	}
	for key, n := range got.keys {
		if n > truth.Keys[key] {
			t.Errorf("key %q: got %d; at most %d were sent", key, n, truth.Keys[key])
		}
	}
}
