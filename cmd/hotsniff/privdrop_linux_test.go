package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hotsniff/hotsniff/internal/testkit"
)

// threadStatus reads some lines of the status of each thread of a process.
func threadStatus(t *testing.T, pid int, names ...string) []map[string]string {
	t.Helper()
	paths, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	var all []map[string]string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it ended
		}
		values := map[string]string{}
		for _, line := range strings.Split(string(text), "\n") {
			name, value, _ := strings.Cut(line, ":")
			for _, want := range names {
				if name == want {
					values[name] = strings.TrimSpace(value)
				}
			}
		}
		all = append(all, values)
	}
	return all
}

var capNames = []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs"}

func mask(list ...int) string { return fmt.Sprintf("%016x", uint64(caps(list...))) }

// checkThreads says when a thread of the daemon has rights it should not have,
// or not those that it should.
func checkThreads(t *testing.T, pid int, want string) {
	t.Helper()
	threads := threadStatus(t, pid, capNames...)
	if len(threads) < 3 {
		t.Fatalf("got %d threads; the Go runtime has more", len(threads))
	}
	for i, s := range threads {
		for _, name := range capNames[:5] {
			if s[name] != want {
				t.Errorf("thread %d: %s is %s; want %s", i, name, s[name], want)
			}
		}
		if s["NoNewPrivs"] != "1" {
			t.Errorf("thread %d: NoNewPrivs is %q; want 1", i, s["NoNewPrivs"])
		}
	}
}

// needRights skips where this process is not root with all it may have.
func needRights(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 || !testkit.CanCapture() {
		t.Skip("needs root with CAP_NET_RAW and CAP_SETPCAP")
	}
	if _, _, permitted, err := capget(); err != nil || permitted&caps(unix.CAP_SETPCAP) == 0 {
		t.Skip("needs root with CAP_SETPCAP")
	}
}

// TestADaemonOfRootKeepsOneCapability: on every thread, and it still captures.
func TestADaemonOfRootKeepsOneCapability(t *testing.T) {
	needRights(t)
	server := live(t)
	p := startDaemon(t, server.Port, "--interface", "lo")
	checkThreads(t, p.cmd.Process.Pid, mask(unix.CAP_NET_RAW))
	for range 50 {
		if _, err := testkit.Ask(server.Addr(), "GET", "seen"); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "requests are seen", func() bool { k := keyOf(p.report(t), "seen"); return k != nil && k.Accesses >= 50 })
	checkThreads(t, p.cmd.Process.Pid, mask(unix.CAP_NET_RAW))
	if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.cmd.Process.Pid)); string(name) != "hotsniff\n" {
		t.Errorf("the process is called %q; want hotsniff", name)
	}
	if strings.Contains(p.logText(), "more rights") {
		t.Errorf("got a warning:\n%s", p.logText())
	}
}

func TestLowPortsKeepTheirCapability(t *testing.T) {
	needRights(t)
	p := startDaemon(t, 6398, "--interface", "lo", "--web.listen-address", "127.0.0.1:979")
	checkThreads(t, p.cmd.Process.Pid, mask(unix.CAP_NET_RAW, unix.CAP_NET_BIND_SERVICE))
}

func TestRightsAreKeptOnRequest(t *testing.T) {
	needRights(t)
	p := startDaemon(t, 6398, "--interface", "lo", "--security.keep-capabilities")
	own := threadStatus(t, os.Getpid(), capNames...)[0]
	for i, s := range threadStatus(t, p.cmd.Process.Pid, capNames...) {
		if s["CapEff"] != own["CapEff"] || s["NoNewPrivs"] != "0" {
			t.Errorf("thread %d: got %v; want what the test has: %v", i, s, own)
		}
	}
}

// TestAUserWithAFileCapability is how the image and a binary after setcap run:
// another user than root, and NET_RAW from the file. Executing the program
// again with no_new_privs must not lose it.
func TestAUserWithAFileCapability(t *testing.T) {
	needRights(t)
	server := live(t)
	bin, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "hotsniff-setcap-") // t.TempDir is closed to others
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	os.Chmod(dir, 0o755)
	path := filepath.Join(dir, "hotsniff")
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	// vfs_cap_data of capabilities(7): revision 2, effective; permitted; inheritable.
	value := make([]byte, 20)
	binary.LittleEndian.PutUint32(value, 0x02000001)
	binary.LittleEndian.PutUint32(value[4:], 1<<unix.CAP_NET_RAW)
	if err := unix.Setxattr(path, "security.capability", value, 0); err != nil {
		t.Skip("the file system has no file capabilities: ", err)
	}
	web, err := testkit.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	p := &daemonProcess{url: fmt.Sprintf("http://127.0.0.1:%d", web)}
	p.cmd = exec.Command(path, "run", "--interface", "lo", "--port", strconv.Itoa(server.Port), "--web.listen-address", p.url[len("http://"):])
	const nobody = 65534
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { p.cmd.Process.Kill(); p.cmd.Wait() }()
	eventually(t, "the daemon answers", func() bool { _, err := p.get("/-/healthy"); return err == nil })
	for i, s := range threadStatus(t, p.cmd.Process.Pid, capNames...) {
		if want := mask(unix.CAP_NET_RAW); s["CapEff"] != want || s["CapPrm"] != want || s["NoNewPrivs"] != "1" {
			t.Errorf("thread %d: got %v; want NET_RAW and NoNewPrivs", i, s)
		}
	}
	eventually(t, "requests are seen", func() bool {
		testkit.Ask(server.Addr(), "GET", "seen")
		return keyOf(p.report(t), "seen") != nil
	})
}

func TestLowPorts(t *testing.T) {
	for addr, want := range map[string]bool{"127.0.0.1:9379": false, ":80": true, "[::1]:1023": true, "[::1]:1024": false, ":0": false, "localhost:http": true, "bad": false} {
		if got := (&webFlags{Listen: []string{"127.0.0.1:9379", addr}}).lowPorts(); got != want {
			t.Errorf("%s: got %v; want %v", addr, got, want)
		}
	}
}
