package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hotsniff/hotsniff/hotlist/redistest"
	"github.com/hotsniff/hotsniff/internal/doctor"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

// finding is one check of the JSON form.
type finding struct{ Status, Name, Found, Fix string }

// findings runs a command that ends in `doctor ...`, compares its exit code, and
// returns the checks by name.
func findings(t *testing.T, code int, command ...string) map[string]finding {
	t.Helper()
	cmd := exec.Command(command[0], append(command[1:], "--format", "json")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, _ := cmd.Output()
	var r struct {
		Schema string
		Failed bool
		Checks []finding
	}
	if err := json.Unmarshal(out, &r); err != nil || r.Schema != doctor.Schema {
		t.Fatalf("%v: %v in %q", command, err, out)
	}
	if got := cmd.ProcessState.ExitCode(); got != code || r.Failed != (code == 1) {
		t.Errorf("exit code %d, failed %v; want %d: %s", got, r.Failed, code, out)
	}
	all := make(map[string]finding)
	for _, f := range r.Checks {
		all[f.Name] = f
		if (f.Status == "ok") != (f.Fix == "") {
			t.Errorf("%+v: what is not ok has a fix", f)
		}
	}
	return all
}

func check(t *testing.T, f finding, status, found string) {
	t.Helper()
	if f.Status != status || !strings.Contains(f.Found, found) {
		t.Errorf("got %+v; want %s, %q", f, status, found)
	}
}

// doctorBin builds the program and picks an address for the metrics.
func doctorBin(t *testing.T) (bin, metrics string) {
	t.Helper()
	bin, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	port, err := testkit.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return bin, "127.0.0.1:" + strconv.Itoa(port)
}

func TestDoctorFindsAllWell(t *testing.T) {
	redis := live(t)
	bin, metrics := doctorBin(t)
	ctx, cancel := context.WithCancel(context.Background())
	load := &testkit.Workload{Addr: redis.Addr(), Conns: 2, Rate: 500, HotKey: "S3cret-key", Share: func(time.Duration) float64 { return 0.5 }, Keys: 100, Seed: 1}
	loaded := make(chan error, 1)
	go func() { loaded <- load.Run(ctx) }()
	defer func() { cancel(); <-loaded }()
	file := write(t, "h.yml", "threshold: 0.1\n")
	args := []string{bin, "doctor", "--wait", "2s", "--port", strconv.Itoa(redis.Port), "--web.listen-address", metrics,
		"--publish.redis-url", "redis://" + redis.Addr(), "--config.file", file}
	all := findings(t, 0, args...)
	for name, found := range map[string]string{"config": "is valid", "capability": "CAP_NET_RAW", "kernel": "Linux", "device": "lo", "server": redis.Addr(),
		"metrics-port": metrics, "publish": "redis answers", "publish-acl": "PUBLISH", "retained": "ZADD", "manual": "SUBSCRIBE",
		"traffic": " requests of ", "encryption": "no TLS", "duplicates": "came twice", "clock": "old"} {
		check(t, all[name], "ok", found)
	}
	if len(all) != 14 {
		t.Errorf("%d checks: %v", len(all), all)
	}
	out, err := exec.Command(bin, args[1:]...).Output()
	if err != nil || strings.Count(string(out), "\n") != 14 || strings.Contains(string(out), "S3cret") {
		t.Errorf("%v:\n%s", err, out)
	}
	// The daemon itself holds its port: nothing is wrong with that.
	p := startDaemon(t, redis.Port)
	all = findings(t, 0, append(args, "--web.listen-address", strings.TrimPrefix(p.url, "http://"))...)
	check(t, all["metrics-port"], "ok", fmt.Sprint("served by hotsniff, pid ", p.cmd.Process.Pid))
}

func TestDoctorFindsTheFaults(t *testing.T) {
	redis := live(t)
	bin, _ := doctorBin(t)
	held, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	file := write(t, "h.yml", "treshold: 0.1\n")
	all := findings(t, 1, bin, "doctor", "--wait", "100ms", "--port", strconv.Itoa(redis.Port), "--interface", "nosuch0",
		"--web.listen-address", held.Addr().String(), "--publish.redis-url", "redis://127.0.0.1:1", "--config.file", file)
	check(t, all["config"], "fail", `did you mean "threshold"`)
	check(t, all["device"], "fail", "nosuch0")
	check(t, all["metrics-port"], "fail", fmt.Sprint("pid ", os.Getpid()))
	check(t, all["publish"], "fail", "refused")
	check(t, all["traffic"], "fail", "nosuch0")
	cmd := exec.Command(bin, "doctor", "--wait", "100ms", "--interface", "nosuch0")
	var errOut strings.Builder
	cmd.Stderr = &errOut
	if cmd.Run(); cmd.ProcessState.ExitCode() != 1 || !strings.HasPrefix(errOut.String(), "hotsniff: doctor: 2 of ") {
		t.Errorf("got %d, %q", cmd.ProcessState.ExitCode(), errOut.String())
	}
	for _, wrong := range [][]string{{"--wait", "0s"}, {"--wait", "x"}, {"--port", "0"}, {"--no-such-flag"}} {
		code, out, _ := hotsniff(t, "", append([]string{"doctor"}, wrong...)...)
		if code != 2 || out != "" {
			t.Errorf("%v: got %d, %q", wrong, code, out)
		}
	}
}

func TestDoctorSeesTLS(t *testing.T) {
	live(t)
	bin, metrics := doctorBin(t)
	dir := t.TempDir()
	pool := certificate(t, dir)
	port := redistest.FreePort(t)
	redistest.Start(t, "--tls-port", fmt.Sprint(port), "--tls-cert-file", filepath.Join(dir, "cert.pem"), "--tls-key-file", filepath.Join(dir, "key.pem"),
		"--tls-ca-cert-file", filepath.Join(dir, "cert.pem"), "--tls-auth-clients", "no")
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			if c, err := tls.Dial("tcp", fmt.Sprint("127.0.0.1:", port), &tls.Config{RootCAs: pool}); err == nil {
				fmt.Fprintf(c, "PING\r\n")
				c.Read(make([]byte, 16))
				c.Close()
			}
		}
	}()
	defer func() { close(stop); <-ended }()
	all := findings(t, 1, bin, "doctor", "--wait", "2s", "--port", fmt.Sprint(port), "--web.listen-address", metrics)
	check(t, all["encryption"], "fail", "are TLS")
	check(t, all["traffic"], "fail", "no request that can be read")
	check(t, all["server"], "ok", fmt.Sprint(":", port))
}

// namespaces makes network namespaces that go with the test.
func namespaces(t *testing.T, names ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root: this test makes network namespaces")
	}
	testkit.Program(t, "ip")
	for _, name := range names {
		t.Cleanup(func() { exec.Command("ip", "netns", "del", name).Run() })
		if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			t.Skipf("ip netns add: %v: %s", err, out)
		}
	}
}

// shell runs a script with names as its arguments.
func shell(t *testing.T, script string, args ...string) {
	t.Helper()
	if out, err := exec.Command("sh", append([]string{"-ec", script, "sh"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// background runs a command until the test ends.
func background(t *testing.T, command ...string) {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
}

// TestDoctorSeesTheSameTrafficTwice: a client in a container, whose packets pass
// its veth device and the bridge.
func TestDoctorSeesTheSameTrafficTwice(t *testing.T) {
	live(t)
	bin, _ := doctorBin(t)
	host, client := fmt.Sprint("hsdoc-h", os.Getpid()), fmt.Sprint("hsdoc-c", os.Getpid())
	namespaces(t, host, client)
	shell(t, `ip -n $1 link set lo up; ip -n $1 link add br0 type bridge; ip -n $1 addr add 10.99.0.1/24 dev br0
		ip -n $1 link add veth0 type veth peer name eth0 netns $2; ip -n $1 link set veth0 master br0; ip -n $1 link set veth0 up; ip -n $1 link set br0 up
		ip -n $2 addr add 10.99.0.2/24 dev eth0; ip -n $2 link set eth0 up`, host, client)
	in := func(ns string, command ...string) []string {
		return append([]string{"ip", "netns", "exec", ns}, command...)
	}
	background(t, in(host, "redis-server", "--bind", "10.99.0.1", "--protected-mode", "no", "--save", "", "--dir", t.TempDir())...)
	eventually(t, "the server answers across the bridge", func() bool {
		cmd := in(client, "redis-cli", "-h", "10.99.0.1", "ping")
		out, err := exec.Command(cmd[0], cmd[1:]...).Output()
		return err == nil && string(out) == "PONG\n"
	})
	background(t, in(client, "redis-benchmark", "-h", "10.99.0.1", "-t", "get", "-c", "2", "-n", "100000000", "-q")...)
	all := findings(t, 0, in(host, bin, "doctor", "--wait", "2s")...)
	check(t, all["duplicates"], "warn", "cross several devices (br0, veth0)")
	check(t, all["traffic"], all["traffic"].Status, " requests")
	all = findings(t, 0, in(host, bin, "doctor", "--wait", "1s", "--interface", "br0")...)
	check(t, all["duplicates"], "ok", "came twice")
}

// TestDoctorInAnEmptyNamespace: no device is up, and the server listens on a
// unix socket only.
func TestDoctorInAnEmptyNamespace(t *testing.T) {
	live(t)
	bin, _ := doctorBin(t)
	ns := fmt.Sprint("hsdoc-e", os.Getpid())
	namespaces(t, ns)
	socket := filepath.Join(t.TempDir(), "redis.sock")
	background(t, "ip", "netns", "exec", ns, "redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", t.TempDir())
	eventually(t, "the socket is there", func() bool { _, err := os.Stat(socket); return err == nil })
	all := findings(t, 1, "ip", "netns", "exec", ns, bin, "doctor", "--wait", "100ms", "--interface", "lo")
	check(t, all["device"], "fail", "lo is down")
	check(t, all["server"], "fail", socket)
	check(t, all["traffic"], "fail", "cannot capture")
}

// TestDoctorWithoutRights runs as nobody, without a capability.
func TestDoctorWithoutRights(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: this test runs the program as nobody")
	}
	setpriv := testkit.Program(t, "setpriv")
	bin, metrics := doctorBin(t)
	dir, err := os.MkdirTemp("", "hotsniff-doctor-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	shell(t, `chmod 755 "$1"; cp "$2" "$1/hotsniff"; chmod 755 "$1/hotsniff"`, dir, bin)
	all := findings(t, 1, setpriv, "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-net_raw",
		filepath.Join(dir, "hotsniff"), "doctor", "--wait", "100ms", "--web.listen-address", metrics)
	check(t, all["capability"], "fail", "uid 65534")
	check(t, all["kernel"], "warn", "cannot be tried")
	check(t, all["traffic"], "fail", "cannot capture")
}

func TestCommandOf(t *testing.T) {
	for _, c := range []struct {
		args string
		want string
	}{
		{"", ""}, {"doctor", "doctor"}, {"--config.file x doctor", "doctor"}, {"--config.file=x doctor --wait 1s", "doctor"},
		{"pin doctor --config.file x", "pin"}, {"--config.file doctor run", "run"}, {"--config.file", ""},
	} {
		if got := commandOf(strings.Fields(c.args)); got != c.want {
			t.Errorf("%q: got %q; want %q", c.args, got, c.want)
		}
	}
}
