package export

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/internal/testkit"
	"github.com/hotsniff/hotsniff/topk"
)

// full is a snapshot from which every metric is made.
func full() *pipeline.Snapshot {
	s := snapshot("a", "b")
	s.Ports[0].Commands = []uint64{1}
	s.Ports[0].Slow.Keys[0].Since = 30e9
	s.Ports[0].Slow.Groups = []topk.GroupStat{{Name: "sessions", Share: .1}}
	s.Capture.Interfaces = []capture.InterfaceStats{{Name: "eth0", Packets: 1}}
	return s
}

// gathered returns the families of a registry that refuses what was not
// described.
func gathered(t *testing.T, o Options) map[string][]string {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(collector{o}, o.Monitor, NewPublishCollector(publishStats))
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, f := range families {
		names := []string{}
		for _, l := range f.GetMetric()[0].GetLabel() {
			names = append(names, l.GetName())
		}
		out[f.GetName()] = names
	}
	return out
}

// TestEveryMetricIsDocumentedAndExported: the list that METRICS.md is made of
// is what a scrape shows, with the same labels.
func TestEveryMetricIsDocumentedAndExported(t *testing.T) {
	got := gathered(t, options(full()))
	for _, d := range Docs() {
		labels, ok := got[d.Name]
		delete(got, d.Name)
		if d.Name == "hotsniff_build_info" {
			continue // not of our collectors
		}
		want := slices.Sorted(slices.Values(d.Labels))
		if !ok || !slices.Equal(labels, want) {
			t.Errorf("%s: exported %v with labels %v; documented with %v", d.Name, ok, labels, want)
		}
		if !strings.HasSuffix(d.Help, ".") {
			t.Errorf("%s: help is no sentence: %q", d.Name, d.Help)
		}
	}
	for name := range got {
		t.Errorf("%s is not documented", name)
	}
}

func TestPromtoolAcceptsTheMetrics(t *testing.T) {
	promtool := testkit.Program(t, "promtool")
	_, body := serve(t, full(), "/metrics")
	cmd := exec.Command(promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(body)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// TestSeriesStayBoundedWithAMillionHotKeys runs an hour of virtual time in
// which a million keys, one after the other, qualify for the hot list.
func TestSeriesStayBoundedWithAMillionHotKeys(t *testing.T) {
	const top = 20
	keys := 1_000_000
	if raceEnabled || testing.Short() {
		keys = 20_000 // and a 50th of the hour
	}
	const perSecond, accesses = 280, 30
	detector := topk.New(topk.Config{Threshold: .0001})
	var s *pipeline.Snapshot
	o := Options{Latest: func() *pipeline.Snapshot { return s }, Top: top}
	o.Monitor = NewMonitor(o.Latest)
	c := collector{o}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	seen, buf := map[string]bool{}, make([]byte, 0, 32)
	for i := range keys {
		t0 := start + int64(i)*1e9/perSecond
		// Thirty keys take turns, so that each is heard of over 0.3 s: what comes
		// in one burst does not qualify.
		for j := range min(i/3+1, accesses) {
			buf = fmt.Appendf(buf[:0], "hot:%d", i-3*j)
			detector.Add(&topk.Access{T: t0, Key: buf, KeyLen: int64(len(buf)), Read: true, Bytes: 30})
		}
		if i%(perSecond/4) == 0 {
			detector.Advance(t0)
		}
		if i%(perSecond*5) != perSecond*5-1 {
			continue
		}
		slow := detector.SnapshotWindow(topk.WindowSlow, top)
		s = &pipeline.Snapshot{T: t0, Started: start, Ports: []pipeline.PortSnapshot{{Port: 6379, Slow: slow, Fast: slow}}}
		n := 0
		for _, label := range keyLabels(t, c) {
			n++
			seen[label] = true
		}
		if n > top*9 {
			t.Fatalf("got %d series of keys after %d keys; want at most %d", n, i, top*9)
		}
	}
	if n := detector.Snapshot().Counters; n.BecameHot == 0 || n.Overflow == 0 {
		t.Errorf("the list was not under pressure: %+v", n)
	}
	if len(seen) <= top {
		t.Errorf("only %d keys were ever exported", len(seen))
	}
}

// keyLabels returns the key label of each series that has one.
func keyLabels(t *testing.T, c prometheus.Collector) []string {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(c)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "key" {
					out = append(out, l.GetValue())
				}
			}
		}
	}
	return out
}

func TestAKeyThatLeftIsGoneAtTheNextScrape(t *testing.T) {
	s := snapshot("a", "b")
	c := collector{Options{Latest: func() *pipeline.Snapshot { return s }, Top: 20}}
	if got := keyLabels(t, c); !slices.Contains(got, "a") {
		t.Fatalf("a is not exported: %v", got)
	}
	s = snapshot("b")
	if got := keyLabels(t, c); slices.Contains(got, "a") || !slices.Contains(got, "b") {
		t.Errorf("got %v; want b alone", got)
	}
}
