package packaging

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hotsniff/hotsniff/internal/report"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

// emptyRoot is a directory with the static program and one capture in it, and
// nothing else: no libc, no /proc, no /dev, no /etc.
func emptyRoot(t *testing.T) string {
	t.Helper()
	bin := os.Getenv("HOTSNIFF_STATIC")
	if bin == "" {
		t.Skip("HOTSNIFF_STATIC does not name a static program: make package-test builds one")
	}
	// Who names a program wants it tested: from here on nothing is skipped.
	if os.Geteuid() != 0 || !testkit.CanCapture() {
		t.Fatal("needs root for chroot and CAP_NET_RAW")
	}
	dir := t.TempDir()
	for from, to := range map[string]string{bin: "hotsniff", "../testdata/captures/go-redis.pcap": "a.pcap"} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func inRoot(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("/hotsniff", args...)
	cmd.Env = []string{}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// TestStaticRunsInAnEmptyRoot: version, a file, and a capture of real traffic.
func TestStaticRunsInAnEmptyRoot(t *testing.T) {
	dir := emptyRoot(t)
	out, err := inRoot(dir, "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "hotsniff ") {
		t.Fatalf("version: %v\n%s", err, out)
	}
	out, err = inRoot(dir, "read", "--format", "json", "a.pcap").Output()
	var file report.Report
	if err != nil || json.Unmarshal(out, &file) != nil || file.Requests == 0 {
		t.Errorf("read: %v, %d requests\n%s", err, file.Requests, out)
	}

	testkit.Program(t, "redis-server")
	server, err := testkit.StartRedis()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	web, err := testkit.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr := "127.0.0.1:" + strconv.Itoa(web)
	daemon := inRoot(dir, "run", "--interface", "lo", "--port", strconv.Itoa(server.Port), "--web.listen-address", addr)
	var log strings.Builder
	daemon.Stderr = &log
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		daemon.Process.Signal(syscall.SIGTERM)
		if err := daemon.Wait(); err != nil {
			t.Errorf("the end: %v\n%s", err, log.String())
		}
	}()
	const requests = 100
	var live report.Report
	for deadline := time.Now().Add(30 * time.Second); live.Requests < requests && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if live, err = ask(addr); err == nil && live.Requests == 0 {
			for range requests {
				testkit.Ask(server.Addr(), "GET", "key")
			}
		}
	}
	if live.Requests < requests || len(live.Keys) == 0 || live.Keys[0].Key != "key" {
		t.Errorf("got %d requests and keys %v; want at least %d of one key\n%s", live.Requests, live.Keys, requests, log.String())
	}
}

func ask(addr string) (r report.Report, err error) {
	resp, err := http.Get("http://" + addr + "/api/v1/hotkeys")
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return r, fmt.Errorf("status %s", resp.Status)
	}
	return r, json.NewDecoder(resp.Body).Decode(&r)
}
