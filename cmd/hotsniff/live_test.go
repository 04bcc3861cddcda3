package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hotsniff/hotsniff/internal/report"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

// buildOnce builds the program once for all live tests.
var buildOnce = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "hotsniff-test-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "hotsniff")
	out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return bin, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if bin, err := buildOnce(); err == nil {
		os.RemoveAll(filepath.Dir(bin))
	}
	os.Exit(code)
}

// daemonProcess is a running `hotsniff run`.
type daemonProcess struct {
	cmd  *exec.Cmd
	url  string
	done chan error

	mu  sync.Mutex
	log strings.Builder
}

func (p *daemonProcess) logText() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// startDaemon runs the daemon on a port, with flags added, until the test ends.
func startDaemon(t *testing.T, port int, flags ...string) *daemonProcess {
	t.Helper()
	return startProcessOn(t, strconv.Itoa(port), flags...)
}

// startProcessOn starts the daemon for the ports of a list.
func startProcessOn(t *testing.T, ports string, flags ...string) *daemonProcess {
	t.Helper()
	bin, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	web, err := testkit.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr := "127.0.0.1:" + strconv.Itoa(web)
	return startProcess(t, exec.Command(bin, append([]string{"run", "--port", ports, "--web.listen-address", addr}, flags...)...), "http://"+addr)
}

// startProcess runs a daemon that will answer at url until the test ends.
func startProcess(t *testing.T, cmd *exec.Cmd, url string) *daemonProcess {
	t.Helper()
	p := &daemonProcess{cmd: cmd, url: url, done: make(chan error, 1)}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for s := bufio.NewScanner(stderr); s.Scan(); {
			p.mu.Lock()
			p.log.WriteString(s.Text() + "\n")
			p.mu.Unlock()
		}
		p.done <- p.cmd.Wait()
	}()
	t.Cleanup(func() { p.cmd.Process.Kill() })
	eventually(t, "the daemon answers", func() bool {
		select {
		case err := <-p.done:
			t.Fatalf("the daemon ended at once: %v\n%s", err, p.logText())
		default:
		}
		_, err := p.get("/api/v1/hotkeys")
		return err == nil
	})
	return p
}

func (p *daemonProcess) get(path string) (string, error) {
	resp, err := http.Get(p.url + path)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return string(body), err
}

func (p *daemonProcess) report(t *testing.T) report.Report {
	t.Helper()
	var r report.Report
	body, err := p.get("/api/v1/hotkeys")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// stop sends sig and returns how long the end took and how the process ended.
func (p *daemonProcess) stop(t *testing.T, sig os.Signal) (time.Duration, error) {
	t.Helper()
	begin := time.Now()
	p.cmd.Process.Signal(sig)
	select {
	case err := <-p.done:
		return time.Since(begin), err
	case <-time.After(10 * time.Second):
		t.Fatalf("still running 10 s after %v:\n%s", sig, p.logText())
		return 0, nil
	}
}

// eventually waits for a condition; the deadline is for broken code only.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

func keyOf(r report.Report, name string) *report.Key {
	for i := range r.Keys {
		if r.Keys[i].Key == name {
			return &r.Keys[i]
		}
	}
	return nil
}

// live skips without what live tests need, and starts a Redis.
func live(t *testing.T) *testkit.Redis {
	t.Helper()
	if testing.Short() {
		t.Skip("live test skipped by -short")
	}
	if !testkit.CanCapture() {
		t.Skip("live test skipped: no CAP_NET_RAW (run as root)")
	}
	testkit.Program(t, "redis-server")
	redis, err := testkit.StartRedis()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Stop)
	return redis
}

// TestRunFindsTheHotKeyOnRealTraffic is the main job: a real server, a real
// capture, and every surface of the daemon.
func TestRunFindsTheHotKeyOnRealTraffic(t *testing.T) {
	for _, iface := range []string{"any", "lo"} {
		t.Run(iface, func(t *testing.T) {
			redis := live(t)
			p := startDaemon(t, redis.Port, "--interface", iface)
			load := &testkit.Workload{Addr: redis.Addr(), Conns: 4, Pipeline: 3, Rate: 3000, HotKey: "star",
				Share: func(time.Duration) float64 { return 0.26 }, Keys: 10000, Seed: 7}
			ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
			defer cancel()
			if err := load.Run(ctx); err != nil {
				t.Fatal(err)
			}
			eventually(t, "every request is counted", func() bool { return p.report(t).Requests >= uint64(load.Sent()) })
			r := p.report(t)
			if want := uint64(load.Sent()); r.Requests != want || r.Accesses != want || r.Commands["GET"] != want {
				t.Errorf("got %d requests, %d accesses, %d GET; want %d", r.Requests, r.Accesses, r.Commands["GET"], want)
			}
			k := keyOf(r, "star")
			if k == nil || k.State != "hot" || k.Since == nil {
				t.Fatalf("star is not hot: %+v", k)
			}
			truth, _ := load.TrueShare(time.Now(), time.Minute)
			if math.Abs(k.Share-truth) > 1e-3 || k.ShareLow > truth || k.ShareHigh < truth {
				t.Errorf("got share %v [%v, %v]; true %v", k.Share, k.ShareLow, k.ShareHigh, truth)
			}
			for _, other := range r.Keys {
				if other.Key != "star" && other.State != "none" && other.State != "probable" {
					t.Errorf("%s is %s with a share of %v", other.Key, other.State, other.Share)
				}
			}
			checkMetrics(t, p, redis.Port)
			if took, err := p.stop(t, syscall.SIGTERM); err != nil || took > 2*time.Second {
				t.Errorf("stopped with %v after %v; want 0 within 2 s", err, took)
			}
			log := p.logText()
			if !strings.Contains(log, `msg="key is hot" key=star`) || !strings.Contains(log, "stopped") {
				t.Errorf("the log does not tell:\n%s", log)
			}
		})
	}
}

func checkMetrics(t *testing.T, p *daemonProcess, port int) {
	t.Helper()
	body, err := p.get("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf(`port="%d"`, port)
	for _, want := range []string{
		`hotsniff_key_share_ratio{key="star",` + at + `} 0.2`,
		`hotsniff_key_hot{key="star",` + at + `} 1`,
		`hotsniff_key_accesses_per_second{key="star",` + at + `,type="read"} `,
		`hotsniff_hot_keys{` + at + `} 1`,
		`hotsniff_requests_total{` + at + `} `,
		`hotsniff_accesses_total{` + at + `} `,
		`hotsniff_commands_total{command="GET",` + at + `} `,
		`hotsniff_capture_packets_total{`,
		`hotsniff_capture_dropped_total{`,
		`hotsniff_decode_errors_total{reason="bulk_length"} 0`,
		`hotsniff_build_info{`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
}

// TestRunStopsOnSIGINT: the other signal, without any traffic.
func TestRunStopsOnSIGINT(t *testing.T) {
	redis := live(t)
	p := startDaemon(t, redis.Port)
	eventually(t, "it is ready", func() bool { _, err := p.get("/-/ready"); return err == nil })
	if _, err := p.get("/-/healthy"); err != nil {
		t.Error("healthy: ", err)
	}
	status, err := p.get("/api/v1/status")
	if err != nil || !strings.Contains(status, `"name": "any"`) || !strings.Contains(status, `"interface": "any"`) || strings.Contains(status, `"help"`) {
		t.Errorf("status: %v in %s", err, status)
	}
	if took, err := p.stop(t, os.Interrupt); err != nil || took > 2*time.Second {
		t.Errorf("stopped with %v after %v; want 0 within 2 s\n%s", err, took, p.logText())
	}
}

// TestRunPublishesWithoutCountingItself: the list reaches a subscriber, and
// hotsniff's own requests to the watched server do not count.
func TestRunPublishesWithoutCountingItself(t *testing.T) {
	redis := live(t)
	p := startDaemon(t, redis.Port, "--publish.redis-url", "redis://"+redis.Addr(), "--node", "n1")
	load := &testkit.Workload{Addr: redis.Addr(), Conns: 2, Rate: 1000, HotKey: "star",
		Share: func(time.Duration) float64 { return 0.5 }, Keys: 1000, Seed: 1}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := load.Run(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the list is retained", func() bool {
		n, err := testkit.Ask(redis.Addr(), "EXISTS", "hotsniff:list:n1")
		return err == nil && n == ":1"
	})
	for _, k := range p.report(t).Keys {
		if strings.HasPrefix(k.Key, "hotsniff:") {
			t.Errorf("hotsniff counts its own key %s", k.Key)
		}
	}
	if _, err := p.stop(t, syscall.SIGTERM); err != nil {
		t.Errorf("stopped with %v\n%s", err, p.logText())
	}
}

// TestRunWithoutPermissionSaysHow runs the program as nobody.
func TestRunWithoutPermissionSaysHow(t *testing.T) {
	bin, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "run", "--web.listen-address", "127.0.0.1:0")
	if os.Getuid() == 0 {
		os.Chmod(filepath.Dir(bin), 0o755)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	} else if testkit.CanCapture() {
		t.Skip("this user may capture")
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("got %v; want exit 1\n%s", err, out)
	}
	if s := string(out); !strings.HasPrefix(s, "hotsniff: ") || !strings.Contains(s, "hint: capturing needs CAP_NET_RAW") {
		t.Errorf("got %q; want the reason and the fix", s)
	}
}

// TestRunCountsTheLastPackets: the signal comes with the last answer, when the
// kernel still holds the requests, and none of them is lost.
func TestRunCountsTheLastPackets(t *testing.T) {
	redis := live(t)
	p := startDaemon(t, redis.Port, "--interface", "lo")
	conn, err := net.Dial("tcp", redis.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const requests = 3000
	answers := bufio.NewReader(conn)
	for range requests {
		if _, err := conn.Write(testkit.AppendCommand(nil, "GET", "key")); err != nil {
			t.Fatal(err)
		}
		if _, err := answers.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.stop(t, syscall.SIGTERM); err != nil {
		t.Errorf("stopped with %v", err)
	}
	if log, want := p.logText(), fmt.Sprintf("msg=stopped requests=%d packets=", requests); !strings.Contains(log, want) {
		t.Errorf("want %q in\n%s", want, log)
	}
}
