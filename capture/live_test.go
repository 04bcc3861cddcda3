//go:build cgo && linux

package capture

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hotsniff/hotsniff/internal/testkit"
)

// needCapture skips a live test when this process may not open packet sockets.
func needCapture(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		t.Skipf("live capture needs CAP_NET_RAW: %v", err)
	}
	unix.Close(fd)
}

// startRedis runs a redis-server of its own on a free loopback port.
func startRedis(t *testing.T) (port int) {
	t.Helper()
	path := testkit.Program(t, "redis-server")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port = l.Addr().(*net.TCPAddr).Port
	l.Close()
	cmd := exec.Command(path, "--port", itoa(port), "--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "-::1", "--dir", t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for range 100 {
		if conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", itoa(port))); err == nil {
			conn.Close()
			return port
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("redis-server does not answer")
	return 0
}

// drive sends n SETs of distinct keys over one connection and reads the replies.
func drive(t *testing.T, host string, port, n int) {
	t.Helper()
	conn, err := net.Dial("tcp", net.JoinHostPort(host, itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	for i := range n {
		key := fmt.Sprintf("key:%06d", i)
		fmt.Fprintf(conn, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$1\r\nv\r\n", len(key), key)
		if line, err := r.ReadString('\n'); err != nil || line != "+OK\r\n" {
			t.Fatalf("request %d: %q, %v", i, line, err)
		}
	}
}

// textStream collects the bytes of all flows and their ends.
type textStream struct {
	countStream
	text strings.Builder
	why  [NumEndReasons]int
}

func (k *textStream) Data(_ *flowState, _ *Meta, b []byte)     { k.text.Write(b) }
func (k *textStream) End(_ *flowState, _ *Meta, why EndReason) { k.why[why]++ }

// pump reads src to its end into an assembler.
func pump(src Source, a *Assembler[flowState]) error {
	var p Packet
	var s Segment
	for {
		switch err := src.Next(&p); {
		case err == nil:
			if Decode(&p, &s) == Decoded {
				a.Add(&s)
			}
		case errors.Is(err, ErrTimeout):
			a.Tick(p.T)
		case err == io.EOF:
			return nil
		default:
			return err
		}
	}
}

// TestLiveSeesEveryRequestOnce: on the loopback device every packet passes
// twice, and still each request reaches the assembler exactly once, with and
// without the kernel's help.
func TestLiveSeesEveryRequestOnce(t *testing.T) {
	needCapture(t)
	port := startRedis(t)
	ports, err := ParsePorts(itoa(port))
	if err != nil {
		t.Fatal(err)
	}
	for _, device := range []string{"any", "lo"} {
		for _, direction := range []Direction{In, Out, Both} {
			for _, host := range []string{"127.0.0.1", "::1"} {
				t.Run(fmt.Sprintf("%s/%v/%s", device, direction, host), func(t *testing.T) {
					src, err := OpenLive(LiveConfig{Interface: device, Ports: ports, Direction: direction, Timeout: 20 * time.Millisecond})
					if err != nil {
						t.Fatal(err)
					}
					k := &textStream{}
					a := NewAssembler[flowState](AssemblerConfig{Ports: ports}, k)
					var wg sync.WaitGroup
					var pumped error
					wg.Go(func() { pumped = pump(src, a) })
					const n = 300
					drive(t, host, port, n)
					src.Stop() // the last requests are in the ring only
					wg.Wait()
					if pumped != nil {
						t.Fatal(pumped)
					}
					a.Flush(time.Now().UnixNano())
					for i := range n {
						if got := strings.Count(k.text.String(), fmt.Sprintf("key:%06d\r\n", i)); got != 1 {
							t.Fatalf("key %d seen %d times", i, got)
						}
					}
					st := a.Stats()
					if st.Duplicates != 0 || st.Gaps != 0 || st.Opened != 1 || st.OpenedSyn != 1 || k.why[EndFIN] != 1 {
						t.Errorf("stats %+v", *st)
					}
					if is := src.Stats().Interfaces[0]; is.Packets < n || is.Packets > n+3 || is.Dropped != 0 {
						t.Errorf("source %+v, want %d requests, SYN and FIN", is, n)
					}
				})
			}
		}
	}
}

// TestLiveWithoutSocketOptions: where the socket cannot be found or has no
// PACKET_IGNORE_OUTGOING, the filter restricts the direction.
func TestLiveWithoutSocketOptions(t *testing.T) {
	needCapture(t)
	port := startRedis(t)
	ports, _ := ParsePorts(itoa(port))
	for _, direction := range []Direction{In, Out} {
		src, err := openLive(LiveConfig{Ports: ports, Direction: direction, Timeout: 20 * time.Millisecond}, socketUse{})
		if err != nil {
			t.Fatal(err)
		}
		k := &textStream{}
		a := NewAssembler[flowState](AssemblerConfig{Ports: ports}, k)
		drive(t, "127.0.0.1", port, 100)
		src.Stop()
		if err := pump(src, a); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(k.text.String(), "key:"); got != 100 || a.Stats().Duplicates != 0 {
			t.Errorf("%v: %d requests, want 100: %+v", direction, got, *a.Stats())
		}
	}
}

// TestLiveIgnoresOutgoing: the option is set on libpcap's socket and on no
// other one.
func TestLiveIgnoresOutgoing(t *testing.T) {
	needCapture(t)
	other, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(other)
	before, err := packetSockets()
	if err != nil {
		t.Skip(err)
	}
	src, err := OpenLive(LiveConfig{Interface: "lo"})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	fd, err := newPacketSocket(before)
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range []struct{ fd, want int }{{fd, 1}, {other, 0}} {
		got, err := unix.GetsockoptInt(check.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING)
		if err != nil {
			t.Skipf("this kernel has no PACKET_IGNORE_OUTGOING: %v", err)
		}
		if got != check.want {
			t.Errorf("socket %d: ignore outgoing is %d, want %d", check.fd, got, check.want)
		}
	}
}

func TestLiveCloseUnblocksNext(t *testing.T) {
	needCapture(t)
	src, err := OpenLive(LiveConfig{Interface: "lo", Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		var p Packet
		for {
			if err := src.Next(&p); !errors.Is(err, ErrTimeout) {
				src.Stats() // allowed after the end
				done <- err
				return
			}
			src.Stats()
		}
	}()
	time.Sleep(120 * time.Millisecond)
	for range 3 {
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
	src.Stop()
	select {
	case err := <-done:
		if err != io.EOF {
			t.Errorf("Next returned %v, want io.EOF", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("Next did not return")
	}
	var p Packet
	if err := src.Next(&p); err != io.EOF {
		t.Errorf("Next after the end: %v", err)
	}
}

func TestLiveCloseBeforeNext(t *testing.T) {
	needCapture(t)
	before, err := packetSockets()
	if err != nil {
		t.Skip(err)
	}
	src, err := OpenLive(LiveConfig{Interface: "lo"})
	if err != nil {
		t.Fatal(err)
	}
	src.Close()
	src.Close()
	if got := src.Stats(); len(got.Interfaces) != 1 {
		t.Errorf("stats after Close: %+v", got)
	}
	var p Packet
	if err := src.Next(&p); err != io.EOF {
		t.Errorf("Next after Close: %v", err)
	}
	if after, _ := packetSockets(); len(after) != len(before) {
		t.Errorf("%d packet sockets, %d before", len(after), len(before))
	}
}

func TestLiveTimeoutTellsTheTime(t *testing.T) {
	needCapture(t)
	ports, _ := ParsePorts("1") // nobody uses it
	src, err := OpenLive(LiveConfig{Interface: "lo", Ports: ports, Timeout: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var p Packet
	before := time.Now().UnixNano()
	if err := src.Next(&p); !errors.Is(err, ErrTimeout) {
		t.Fatalf("Next: %v, want ErrTimeout", err)
	}
	if p.T < before || p.T > time.Now().UnixNano() {
		t.Errorf("time %d is not now", p.T)
	}
	src.Stop()
	for range 1000 {
		if err = src.Next(&p); err == io.EOF {
			return
		}
	}
	t.Errorf("no end after Stop: %v", err)
}

func TestLiveErrors(t *testing.T) {
	needCapture(t)
	if _, err := OpenLive(LiveConfig{Interface: "nosuchdevice0"}); !errors.Is(err, ErrNoDevice) {
		t.Errorf("unknown device: %v, want ErrNoDevice", err)
	}
}

// TestLiveWithoutPermission runs this test again as an unprivileged user.
func TestLiveWithoutPermission(t *testing.T) {
	const child = "HOTSNIFF_TEST_UNPRIVILEGED"
	if os.Getenv(child) != "" {
		_, err := OpenLive(LiveConfig{Interface: "lo"})
		fmt.Printf("is=%v text=%v\n", errors.Is(err, ErrPermission), err)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("needs root to become somebody else")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The test binary lies in a directory that only its owner may enter.
	data, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "hotsniff-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(dir+"/test", data, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(dir+"/test", "-test.run=^TestLiveWithoutPermission$", "-test.v")
	cmd.Env = []string{child + "=1"}
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("cannot run as another user: %v: %s", err, out)
	}
	if !strings.Contains(string(out), "is=true") || !strings.Contains(string(out), "setcap cap_net_raw+ep") {
		t.Errorf("got %s", out)
	}
}

// makeVeth makes a pair of connected devices, both up.
func makeVeth(t *testing.T, one, other string) {
	t.Helper()
	testkit.Program(t, "ip")
	exec.Command("ip", "link", "del", one).Run() // left by a run that was killed
	if out, err := exec.Command("ip", "link", "add", one, "type", "veth", "peer", "name", other).CombinedOutput(); err != nil {
		t.Skipf("cannot make a device pair: %v: %s", err, out)
	}
	t.Cleanup(func() { exec.Command("ip", "link", "del", one).Run() })
	for _, device := range []string{one, other} {
		if out, err := exec.Command("ip", "link", "set", device, "up").CombinedOutput(); err != nil {
			t.Skipf("cannot set %s up: %v: %s", device, err, out)
		}
	}
}

// TestLiveFrames sends frames of every kind over a pair of devices and captures
// at the receiving and at the sending end.
func TestLiveFrames(t *testing.T) {
	needCapture(t)
	makeVeth(t, "hsntest0", "hsntest1")
	sender, err := net.InterfaceByName("hsntest1")
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var frames [][]byte
	for _, v6 := range []bool{false, true} {
		for i, vlans := range [][]uint16{nil, {etherVLAN}, {etherQinQ, etherVLAN}} {
			f := request()
			f.v6, f.vlans, f.seq = v6, vlans, uint32(1000*len(frames))
			f.srcPort += uint16(i)
			frames = append(frames, f.bytes())
			f.payload = "" // a pure acknowledgement
			frames = append(frames, f.bytes())
		}
	}
	option, filter := socketUse{true, true}, socketUse{true, false}
	for _, tt := range []struct {
		device    string
		direction Direction
		use       socketUse
		want      int
	}{
		{"hsntest0", In, option, 6}, {"hsntest0", Both, option, 6}, {"hsntest0", Out, option, 0},
		{"hsntest1", In, option, 0}, {"hsntest1", Both, option, 6}, {"hsntest1", Out, option, 6},
		// Without PACKET_IGNORE_OUTGOING the filter tells the directions apart.
		{"hsntest0", In, filter, 6}, {"hsntest1", In, filter, 0}, {"hsntest1", Out, filter, 6},
	} {
		src, err := openLive(LiveConfig{Interface: tt.device, Direction: tt.direction, Timeout: 20 * time.Millisecond}, tt.use)
		if err != nil {
			t.Fatal(err)
		}
		for _, frame := range frames {
			if err := unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: sender.Index}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Millisecond) // packets cross to the other end in a softirq
		src.Stop()
		got := 0
		var p Packet
		var s Segment
		for {
			err := src.Next(&p)
			if err == io.EOF {
				break
			}
			if err == nil && Decode(&p, &s) == Decoded && s.WireLen == len(request().payload) {
				got++
			}
		}
		if got != tt.want {
			t.Errorf("%s, %v, socket %+v: %d requests, want %d", tt.device, tt.direction, tt.use, got, tt.want)
		}
	}
}
