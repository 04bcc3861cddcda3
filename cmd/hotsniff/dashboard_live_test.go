package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hotsniff/hotsniff/internal/export"
	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/internal/testkit"
	"github.com/hotsniff/hotsniff/topk"
)

// startPrometheus runs one that scrapes the daemon each second, and returns
// its URL.
func startPrometheus(t *testing.T, p *daemonProcess) string {
	t.Helper()
	bin := testkit.Program(t, "prometheus")
	dir := t.TempDir()
	rules, err := filepath.Abs("../../dashboards/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%s]\nscrape_configs:\n"+
		"  - job_name: hotsniff\n    sample_limit: 30000\n    label_value_length_limit: 256\n    static_configs: [{targets: ['%s']}]\n",
		rules, strings.TrimPrefix(p.url, "http://"))
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	port, err := testkit.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	cmd := exec.Command(bin, "--config.file", file, "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", addr)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	base := "http://" + addr
	eventually(t, "prometheus is ready", func() bool {
		resp, err := http.Get(base + "/-/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == 200
	})
	return base
}

// promQuery runs a query and returns its number of series, or the error.
func promQuery(base, expr string, ranged bool) (int, error) {
	v := url.Values{"query": {expr}}
	path := "/api/v1/query"
	if ranged {
		now := time.Now().Unix()
		path = "/api/v1/query_range"
		v.Set("start", fmt.Sprint(now-30))
		v.Set("end", fmt.Sprint(now))
		v.Set("step", "1")
	}
	resp, err := http.Get(base + path + "?" + v.Encode())
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	var answer struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return 0, fmt.Errorf("%w in %s", err, body)
	}
	if answer.Status != "success" {
		return 0, fmt.Errorf("%s", answer.Error)
	}
	return len(answer.Data.Result), nil
}

// runLoad runs a workload until the test ends.
func runLoad(t *testing.T, load *testkit.Workload) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- load.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// labelValues is a query of a variable of Grafana: series and label.
var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// TestDashboardShowsRealTraffic: a real Prometheus scrapes a real daemon, and
// every expression of the dashboard gives something: of panels, variables and
// annotations.
func TestDashboardShowsRealTraffic(t *testing.T) {
	redis := live(t)
	rules := write(t, "hotsniff.yml", "rules:\n  - prefix: 'item:'\n    group: items\n")
	p := startDaemon(t, redis.Port, "--interface", "lo", "--config.file", rules, "--publish.redis-url", "redis://"+redis.Addr(), "--publish.interval", "1s")
	base := startPrometheus(t, p)
	share := func(time.Duration) float64 { return 0.3 }
	runLoad(t, &testkit.Workload{Addr: redis.Addr(), Conns: 4, Rate: 1000, HotKey: "star", Share: share, Keys: 1000, Seed: 3})
	eventually(t, "the hot key is in Prometheus", func() bool {
		n, err := promQuery(base, `hotsniff_key_hot{key="star"} == 1`, false)
		return err == nil && n == 1
	})
	data, err := os.ReadFile("../../dashboards/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Annotations struct {
			List []struct{ Name, Expr string }
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
		Panels []struct {
			Title   string
			Targets []struct {
				Expr    string
				Instant bool
			}
		}
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	metrics, err := p.get("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "Prometheus has enough samples for rates", func() bool {
		n, err := promQuery(base, "count_over_time(up[30s]) >= 8", false)
		return err == nil && n == 1
	})
	variables := strings.NewReplacer("$job", ".*", "$instance", ".*", "$port", ".*", "$__rate_interval", "10s")
	n := 0
	for _, panel := range d.Panels {
		for _, q := range panel.Targets {
			expr := variables.Replace(q.Expr)
			series, err := promQuery(base, expr, !q.Instant)
			if err != nil {
				t.Errorf("%s: %s: %v", panel.Title, expr, err)
			}
			n++
			if strings.Contains(expr, "hotsniff_publish_") && !strings.Contains(metrics, "hotsniff_publish_") {
				t.Logf("%s: publish metrics are not exported", panel.Title)
				continue
			}
			if series == 0 {
				t.Errorf("%s: nothing for %s", panel.Title, expr)
			}
		}
	}
	if n < 30 {
		t.Errorf("got %d expressions; want the whole dashboard", n)
	}
	for _, v := range d.Templating.List {
		if m := labelValues.FindStringSubmatch(v.Definition); m != nil {
			if series, err := promQuery(base, "count by ("+m[2]+") ("+variables.Replace(m[1])+") ", false); err != nil || series == 0 {
				t.Errorf("variable %s: got %d values, %v", v.Name, series, err)
			}
			n++
		}
	}
	// A counter that Prometheus saw first at 1 has not increased: another key.
	runLoad(t, &testkit.Workload{Addr: redis.Addr(), Conns: 4, Rate: 1000, HotKey: "nova", Share: share, Keys: 1000, Seed: 4})
	for _, a := range d.Annotations.List {
		if a.Expr != "" {
			eventually(t, "annotation "+a.Name, func() bool {
				series, err := promQuery(base, variables.Replace(a.Expr), true)
				return err == nil && series > 0
			})
			n++
		}
	}
	if n < 34 {
		t.Error("want three variables and an annotation")
	}
	if series, err := promQuery(base, `ALERTS{alertname="HotKeyExtreme"}`, false); err != nil || series != 1 {
		t.Errorf("HotKeyExtreme: got %d, %v; want it pending or firing", series, err)
	}
	if series, err := promQuery(base, `ALERTS{alertname=~"Hotsniff.*"}`, false); err != nil || series != 0 {
		t.Errorf("alerts about hotsniff itself: got %d, %v", series, err)
	}
}

// TestPrometheusReadsHostileKeysAndForgetsThoseThatLeft: what real Prometheus
// makes of names that clients chose, and that a key is gone with the scrape
// after it left instead of five minutes later.
func TestPrometheusReadsHostileKeysAndForgetsThoseThatLeft(t *testing.T) {
	testkit.Program(t, "prometheus")
	window := func(keys ...string) *pipeline.Snapshot {
		w := &topk.Snapshot{T: 60e9, WindowSeconds: 60, SampleEvery: 1, EventEvery: 1, Accesses: 1000}
		for _, k := range keys {
			w.Keys = append(w.Keys, topk.KeyStat{Key: []byte(k), KeyLen: int64(len(k)), Share: .01, Accesses: 10, Since: 1})
		}
		return &pipeline.Snapshot{T: 60e9, Started: 1, Ports: []pipeline.PortSnapshot{{Port: 6379, Slow: w, Fast: w}}}
	}
	hostile := []string{"plain", "bin\xff\x00", "new\nline", `quote"\`, `{a="b"} 1`, "emoji😀", "rtl\u202egnp", "שלום", "", "# EOF", strings.Repeat("x", 1000)}
	var s atomic.Pointer[pipeline.Snapshot]
	s.Store(window(hostile...))
	server := httptest.NewServer(export.NewHandler(export.Options{Latest: s.Load, Monitor: export.NewMonitor(s.Load), Top: 20}))
	defer server.Close()
	base := startPrometheus(t, &daemonProcess{url: server.URL})
	count := func(want int, what string) {
		t.Helper()
		eventually(t, what, func() bool {
			n, err := promQuery(base, "hotsniff_key_share_ratio", false)
			return err == nil && n == want
		})
	}
	count(len(hostile), "every key is a series")
	for _, label := range []string{"plain", `bin\xff\x00`, `new\x0aline`, `quote"\`, `{a="b"} 1`, "emoji😀", `rtl\u{202e}gnp`, "שלום", `""`, "# EOF"} {
		if n, err := promQuery(base, "hotsniff_key_hot{key="+strconv.Quote(label)+",port=\"6379\"}", false); err != nil || n != 1 {
			t.Errorf("%q: got %d series, %v", label, n, err)
		}
	}
	s.Store(window("plain"))
	count(1, "the keys that left are gone")
	for _, name := range []string{"accesses_per_second", "bytes_per_second", "share_lower_ratio", "clients", "hot", "hot_since_timestamp_seconds"} {
		if n, err := promQuery(base, "hotsniff_key_"+name+"{key!='plain'}", false); err != nil || n != 0 {
			t.Errorf("%s: %d series are left, %v", name, n, err)
		}
	}
	if n, err := promQuery(base, "up == 0", false); err != nil || n != 0 {
		t.Errorf("a scrape was refused: %d, %v", n, err)
	}
}
