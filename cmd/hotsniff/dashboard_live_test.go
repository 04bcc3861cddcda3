package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hotsniff/hotsniff/internal/testkit"
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
		"  - job_name: hotsniff\n    sample_limit: 10000\n    label_value_length_limit: 256\n    static_configs: [{targets: ['%s']}]\n",
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

// TestDashboardShowsRealTraffic: a real Prometheus scrapes a real daemon, and
// every expression of the dashboard gives something.
func TestDashboardShowsRealTraffic(t *testing.T) {
	redis := live(t)
	rules := write(t, "hotsniff.yml", "rules:\n  - prefix: 'item:'\n    group: items\n")
	p := startDaemon(t, redis.Port, "--interface", "lo", "--config.file", rules, "--publish.redis-url", "redis://"+redis.Addr(), "--publish.interval", "1s")
	base := startPrometheus(t, p)
	load := &testkit.Workload{Addr: redis.Addr(), Conns: 4, Rate: 1000, HotKey: "star",
		Share: func(time.Duration) float64 { return 0.3 }, Keys: 1000, Seed: 3}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- load.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	eventually(t, "the hot key is in Prometheus", func() bool {
		n, err := promQuery(base, `hotsniff_key_hot{key="star"} == 1`, false)
		return err == nil && n == 1
	})
	data, err := os.ReadFile("../../dashboards/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
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
	if series, err := promQuery(base, `ALERTS{alertname="HotKeyExtreme"}`, false); err != nil || series != 1 {
		t.Errorf("HotKeyExtreme: got %d, %v; want it pending or firing", series, err)
	}
	if series, err := promQuery(base, `ALERTS{alertname=~"Hotsniff.*"}`, false); err != nil || series != 0 {
		t.Errorf("alerts about hotsniff itself: got %d, %v", series, err)
	}
}
