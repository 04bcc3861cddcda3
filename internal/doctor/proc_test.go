package doctor

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hotsniff/hotsniff/capture"
)

func TestParseStatus(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       processStatus
		bad        bool
	}{
		{"root", "Name:\thotsniff\nUid:\t0\t0\t0\t0\nCapPrm:\t000001ffffffffff\nCapEff:\t000001ffffffffff\nCapBnd:\t000001ffffffffff\n",
			processStatus{0, 0x1ffffffffff, 0x1ffffffffff, 0x1ffffffffff, true, true, true}, false},
		{"the effective uid", "Uid:\t1000\t7\t7\t7\nCapPrm: 2000\nCapEff: 0\nCapBnd: 2000\n", processStatus{7, 0, 0x2000, 0x2000, true, true, true}, false},
		{"empty", "", processStatus{}, true},
		{"no effective set", "CapPrm: 0\nCapBnd: 0\n", processStatus{}, true},
		{"not a number", "CapPrm: x\nCapEff: y\nCapBnd: z\n", processStatus{}, true},
		{"nothing after the colon", "Uid:\nCapPrm:\nCapEff:\nCapBnd:\n", processStatus{}, true},
	} {
		got, err := parseStatus([]byte(c.text))
		if (err != nil) != c.bad || !c.bad && got != c.want {
			t.Errorf("%s: got %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
}

const tcpHeader = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

func TestParseTCP(t *testing.T) {
	text := tcpHeader +
		"   0: 0100007F:18EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000   111        0 12345 1 0000000000000000 100 0 0 10 0\n" +
		"   1: 0100007F:18EB 0100007F:C350 01 00000000:00000000 00:00000000 00000000   111        0 12346 1 0000000000000000 20 4 30 10 -1\n" +
		"   2: 00000000000000000000000000000000:1BC8 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 111 0 7 1 0\n" +
		"   3: 0000000000000000FFFF00000100007F:1BC9 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 111 0 8 1 0\n" +
		"   4: 00000000000000000000000001000000:1BCA 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 111 0 9 1 0\n"
	want := []string{"127.0.0.1:6379 12345", "[::]:7112 7", "127.0.0.1:7113 8", "[::1]:7114 9"}
	var got []string
	for _, l := range parseTCP([]byte(text)) {
		got = append(got, l.addr.String()+" "+l.inode)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
	for _, junk := range []string{"", "\n\n", "a b c", "0: x y 0A 0 0 0 0 0 1 0", "0: 01:1 0:0 0A 0 0 0 0 0 1 0", "0: 0100007F:FFFFF 0:0 0A 0 0 0 0 0 1 0",
		"0: 010000:18EB 0:0 0A 0 0 0 0 0 1 0", strings.Repeat("0A ", 1000)} {
		if got := parseTCP([]byte(junk)); len(got) != 0 {
			t.Errorf("%.40q: got %v", junk, got)
		}
	}
}

func TestParseUnix(t *testing.T) {
	text := "Num       RefCount Protocol Flags    Type St Inode Path\n" +
		"0000000000000000: 00000002 00000000 00010000 0001 01 20000 /run/redis/redis-server.sock\n" +
		"0000000000000000: 00000003 00000000 00000000 0001 03 20001 /run/redis/redis-server.sock\n" + // a connection
		"0000000000000000: 00000002 00000000 00010000 0001 01 20002 /tmp/with space/valkey.sock\n" +
		"0000000000000000: 00000002 00000000 00010000 0001 01 20003 /run/redis-sentinel.sock\n" +
		"0000000000000000: 00000002 00000000 00010000 0001 01 20004 /run/redis/other\n" +
		"0000000000000000: 00000002 00000000 00010000 0001 01 20005\n" +
		"0000000000000000: 00000002 00000000 zzz 0001 01 20006 /run/redis.sock\n"
	want := []string{"/run/redis/redis-server.sock", "/tmp/with space/valkey.sock"}
	if got := parseUnix([]byte(text)); !slices.Equal(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
	if got := parseUnix(nil); got != nil {
		t.Errorf("got %q of nothing", got)
	}
}

func FuzzParsers(f *testing.F) {
	f.Add([]byte(tcpHeader))
	f.Add([]byte("0: 0100007F:18EB 0:0 0A 0 0 0 0 0 1 0"))
	f.Add([]byte("x: 2 0 00010000 1 1 1 /run/redis.sock"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = parseStatus(text)
		parseTCP(text)
		parseUnix(text)
	})
}

// fakeProc writes files of a /proc of our own.
func fakeProc(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// expectFinding compares the state, and that the texts hold what they must.
func expectFinding(t *testing.T, what string, got Finding, status Status, found, fix string) {
	t.Helper()
	if got.Status != status || !strings.Contains(got.Found, found) || !strings.Contains(got.Fix, fix) || (got.Status != OK) != (got.Fix != "") {
		t.Errorf("%s: got %v; want %v, %q, fix %q", what, got, status, found, fix)
	}
}

func TestCapability(t *testing.T) {
	status := func(eff, prm, bnd string) string {
		return fakeProc(t, map[string]string{"self/status": "Uid:\t5\t5\t5\t5\nCapEff: " + eff + "\nCapPrm: " + prm + "\nCapBnd: " + bnd + "\n"})
	}
	expectFinding(t, "effective", Capability(status("2000", "2000", "2000")), OK, "uid 5", "")
	expectFinding(t, "permitted", Capability(status("0", "2000", "2000")), Failure, "not effective", "cap_net_raw+ep")
	expectFinding(t, "possible", Capability(status("0", "0", "ffff")), Failure, "no CAP_NET_RAW", "setcap")
	expectFinding(t, "bounded", Capability(status("dfff", "dfff", "dfff")), Failure, "bounding", "NET_RAW")
	if f := Capability(t.TempDir()); f.Status != Warning {
		t.Errorf("no /proc: got %v", f)
	}
}

func portSet(t *testing.T, text string) *capture.PortSet {
	t.Helper()
	p, err := capture.ParsePorts(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestServer(t *testing.T) {
	tcp := tcpHeader + "0: 0100007F:18EB 00000000:0000 0A 0:0 00:0 0 111 0 12345 1\n"
	unix := "x: 2 0 00010000 1 1 1 /run/redis.sock\n"
	six, seven := portSet(t, "6379"), portSet(t, "7000")
	both := fakeProc(t, map[string]string{"net/tcp": tcp, "net/unix": unix})
	plain := fakeProc(t, map[string]string{"net/tcp": tcp})
	expectFinding(t, "listens", Server(plain, six, false), OK, "127.0.0.1:6379", "")
	expectFinding(t, "and on a socket", Server(both, six, false), Warning, "/run/redis.sock", "TCP")
	expectFinding(t, "on a socket only", Server(both, seven, false), Failure, "/run/redis.sock", "redis.conf")
	expectFinding(t, "nothing", Server(plain, seven, false), Warning, "port 7000", "--port")
	expectFinding(t, "on a host of clients", Server(plain, seven, true), OK, "as expected", "")
}

func TestDevice(t *testing.T) {
	expectFinding(t, "lo", Device("lo"), OK, "lo is up", "")
	expectFinding(t, "any", Device("any"), OK, "lo", "")
	expectFinding(t, "none", Device("nosuch0"), Failure, "there is no nosuch0", "--interface")
}

func TestMetricsPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	got := Metrics("/proc", addr)[0]
	expectFinding(t, "taken", got, Failure, fmt.Sprint("pid ", os.Getpid()), "--web.listen-address")
	expectFinding(t, "by somebody unseen", Metrics(t.TempDir(), addr)[0], Failure, "not ours to see", "--web.listen-address")
	l.Close()
	expectFinding(t, "free", Metrics("/proc", addr)[0], OK, "free", "")
	expectFinding(t, "no address", Metrics("/proc", "nonsense")[0], Failure, "", "--web.listen-address")
}

func TestLongListsAreCut(t *testing.T) {
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprint("veth", i))
	}
	if got := list(names); !strings.HasSuffix(got, "veth7 and 12 more") {
		t.Errorf("got %q", got)
	}
}
