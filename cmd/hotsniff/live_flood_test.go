//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

// promisedRSS is what the daemon may have in memory whatever arrives, in KiB:
// heap, stacks, program and the ring that it shares with the kernel.
const promisedRSS = 128 << 10

// floodWire sends frames into one end of a pair of devices; the daemon captures
// at the other. Nobody answers them.
type floodWire struct {
	t     *testing.T
	fd    int
	frame []byte
	sent  int
}

func newFloodWire(t *testing.T) (w *floodWire, device string) {
	t.Helper()
	// Two runs at once must not meet on one wire.
	device = fmt.Sprintf("hsnf%d", os.Getpid())
	far := device + "x"
	testkit.Program(t, "ip")
	exec.Command("ip", "link", "del", device).Run() // left by a run that was killed
	for _, arguments := range []string{"link add " + device + " type veth peer name " + far, "link set " + device + " up", "link set " + far + " up"} {
		if out, err := exec.Command("ip", strings.Fields(arguments)...).CombinedOutput(); err != nil {
			t.Skipf("live test skipped: ip %s: %v: %s", arguments, err, out)
		}
	}
	t.Cleanup(func() { exec.Command("ip", "link", "del", device).Run() })
	to, err := net.InterfaceByName(far)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: to.Index}); err != nil {
		t.Fatal(err)
	}
	return &floodWire{t: t, fd: fd}, device
}

// send sends a segment to port 6379.
func (w *floodWire) send(from netip.AddrPort, seq, ack uint32, flags byte, payload string) {
	w.sendTo(6379, from, seq, ack, flags, payload)
}

func (w *floodWire) sendTo(port uint16, from netip.AddrPort, seq, ack uint32, flags byte, payload string) {
	server := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 1}), port)
	w.frame = testkit.AppendSegment(w.frame[:0], from, server, seq, ack, flags, []byte(payload))
	for {
		_, err := unix.Write(w.fd, w.frame)
		if err == nil {
			w.sent++
			return
		}
		if err != unix.ENOBUFS && err != unix.EINTR {
			w.t.Fatal(err)
		}
	}
}

func floodClient(n uint32, port uint16) netip.AddrPort {
	var ip [4]byte
	binary.BigEndian.PutUint32(ip[:], 0x0b000000|n&0xffffff)
	return netip.AddrPortFrom(netip.AddrFrom4(ip), port)
}

// liveFloods send packet i of a flood.
var liveFloods = []struct {
	name    string
	packets int
	send    func(w *floodWire, i int)
}{
	{"SYNs", 300_000, func(w *floodWire, i int) {
		w.send(floodClient(uint32(i), uint16(i*7)), uint32(i)*2654435761, 0, testkit.SYN, "")
	}},
	{"100,000 connections", 300_000, func(w *floodWire, i int) {
		const request = "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n"
		turn := uint32(i / 100_000)
		w.send(floodClient(uint32(i%100_000), 5000), 1+turn*uint32(len(request)), 1+turn*5, testkit.ACK|0x08, request)
	}},
	{"packets of one byte", 300_000, func(w *floodWire, i int) {
		const stream = "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n"
		turn := uint32(i / 10_000)
		w.send(floodClient(uint32(i%10_000), 6000), 1+turn, 1, testkit.ACK, stream[int(turn)%len(stream):][:1])
	}},
	{"packets of one byte out of order", 300_000, func(w *floodWire, i int) {
		w.send(floodClient(uint32(i%10_000), 7000), 1+uint32(i/10_000)*2, 1, testkit.ACK, "*")
	}},
	{"requests that never end", 300_000, func(w *floodWire, i int) {
		w.send(floodClient(uint32(i), 5001), 1, 1, testkit.ACK, "*1000000\r\n$4\r\nMGET\r\n$400\r\n"+strings.Repeat("k", 400)+"\r\n$536870912\r\nx")
	}},
	{"long keys that are all distinct", 150_000, func(w *floodWire, i int) {
		w.send(floodClient(1, 4000), 1+uint32(i)*1229, 1+uint32(i)*5, testkit.ACK|0x08, fmt.Sprintf("*2\r\n$3\r\nGET\r\n$1200\r\n%01200d\r\n", i))
	}},
}

// TestRunStaysSmallUnderFloods: the memory of the process as the kernel counts
// it, under one flood after the other on a real device, and a key with a tenth
// of the packets is found all the same.
func TestRunStaysSmallUnderFloods(t *testing.T) {
	if testing.Short() || !testkit.CanCapture() {
		t.Skip("live test skipped: -short, or no CAP_NET_RAW (run as root)")
	}
	for _, budget := range []string{"0", "0.1"} { // every packet, and as shipped
		t.Run("budget "+budget, func(t *testing.T) {
			w, device := newFloodWire(t)
			p := startDaemon(t, 6379, "--interface", device, "--sampling.cpu-budget", budget)
			star := floodClient(0xfffffe, 999)
			const get = "*2\r\n$3\r\nGET\r\n$4\r\nstar\r\n"
			seq, ack := uint32(1), uint32(1)
			for _, f := range liveFloods {
				before := w.sent
				for i := range f.packets {
					f.send(w, i)
					if i%10 == 0 {
						w.send(star, seq, ack, testkit.ACK|0x08, get)
						seq, ack = seq+uint32(len(get)), ack+5
					}
				}
				if n := w.sent - before; n != f.packets+f.packets/10 {
					t.Fatalf("%s: %d packets sent", f.name, n)
				}
				eventually(t, f.name+": star is hot", func() bool {
					k := keyOf(p.report(t), "star")
					return k != nil && k.State == "hot"
				})
				rss, peak := memoryOf(t, p)
				st := p.status(t)
				t.Logf("%s: RSS %.1f MiB, at most %.1f; 1 in %d", f.name, float64(rss)/1024, float64(peak)/1024, st.Sampling.KernelEvery)
				if peak > promisedRSS {
					t.Errorf("%s: the process had %d KiB in memory; want at most %d", f.name, peak, promisedRSS)
				}
			}
			if budget == "0" {
				eventually(t, "every packet is captured, or told to be lost", func() bool {
					c := p.report(t).Capture
					return c.Packets+c.Dropped >= uint64(w.sent)
				})
			}
			if _, err := p.stop(t, unix.SIGTERM); err != nil {
				t.Errorf("stopped with %v\n%s", err, p.logText())
			}
		})
	}
}

// TestRunStaysSmallOnManyPorts: with as many servers as one daemon follows, each
// with more keys than its tables hold, it takes what is promised for so many.
func TestRunStaysSmallOnManyPorts(t *testing.T) {
	if testing.Short() || !testkit.CanCapture() {
		t.Skip("live test skipped: -short, or no CAP_NET_RAW (run as root)")
	}
	const ports, keys, packets = 32, 20_000, 1_000_000
	const star = "some:longer:name:of:a:key:starry" // as long as the others: sequence numbers stay simple
	w, device := newFloodWire(t)
	p := startProcessOn(t, "7000-7031", "--interface", device, "--sampling.cpu-budget", "0")
	var seqs [ports]uint32
	for i := range packets {
		port, name := i%ports, fmt.Sprintf("some:longer:name:of:a:key:%06d", (i/ports*7919)%keys)
		if i/ports%10 == 0 {
			name = star
		}
		text := fmt.Sprintf("*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", len(name), name)
		w.sendTo(uint16(7000+port), floodClient(uint32(i/ports%100), 5000+uint16(port)), 1+seqs[port], 1+uint32(i/ports/100)*5, testkit.ACK|0x08, text)
		if i/ports%100 == 99 {
			seqs[port] += uint32(len(text))
		}
	}
	eventually(t, "star is hot on every port", func() bool {
		metrics, err := p.get("/metrics")
		hot := 0
		for port := range ports {
			if strings.Contains(metrics, fmt.Sprintf("hotsniff_key_hot{key=%q,port=\"%d\"} 1\n", star, 7000+port)) {
				hot++
			}
		}
		return err == nil && hot == ports
	})
	rss, peak := memoryOf(t, p)
	t.Logf("RSS %.1f MiB, at most %.1f", float64(rss)/1024, float64(peak)/1024)
	if want := promisedRSS + (ports-pipeline.FullPorts)*portMemory>>10; peak > want {
		t.Errorf("the process had %d KiB in memory; want at most %d", peak, want)
	}
	if _, err := p.stop(t, unix.SIGTERM); err != nil {
		t.Errorf("stopped with %v\n%s", err, p.logText())
	}
}

// memoryOf reads what the kernel counts for the process, in KiB.
func memoryOf(t *testing.T, p *daemonProcess) (rss, peak int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if name, rest, _ := strings.Cut(line, ":"); name == "VmRSS" || name == "VmHWM" {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			if name == "VmRSS" {
				rss = n
			} else {
				peak = n
			}
		}
	}
	if rss == 0 || peak == 0 {
		t.Fatalf("no memory in %s", status)
	}
	return rss, peak
}

// TestRunComesUnderItsBudget is the step response of a real daemon with the
// default budget: as many packets as this machine can send, and then none.
// How long the steps took is logged; what is promised in seconds is asserted
// in virtual time by TestBudgetStep.
func TestRunComesUnderItsBudget(t *testing.T) {
	if testing.Short() || !testkit.CanCapture() {
		t.Skip("live test skipped: -short, or no CAP_NET_RAW (run as root)")
	}
	const budget, length = 0.1, 12 * time.Second
	w, device := newFloodWire(t)
	p := startDaemon(t, 6379, "--interface", device)
	// The pipelines make a packet dear: 16 requests each, for 1,000 keys.
	request := func(i int) string {
		var b strings.Builder
		for j := range 16 {
			fmt.Fprintf(&b, "*2\r\n$3\r\nGET\r\n$7\r\nkey:%03d\r\n", (i*7+j*131)%1000)
		}
		return b.String()
	}
	var payloads [64]string
	for i := range payloads {
		payloads[i] = request(i)
	}
	var under, highest time.Duration
	begin, coarsest, dearest := time.Now(), 1, 0.0
	look := func() {
		st := p.status(t)
		coarsest, dearest = max(coarsest, st.Sampling.KernelEvery), max(dearest, st.CPURatio)
		switch at := time.Since(begin); {
		case st.CPURatio > budget:
			highest, under = at, 0
		case under == 0:
			under = at
		}
	}
	next := begin
	for i := 0; time.Since(begin) < length; i++ {
		turn, client := uint32(i/50), uint32(i%50)
		text := payloads[i%len(payloads)]
		w.send(floodClient(client, 5000), 1+turn*uint32(len(text)), 1+turn*80, testkit.ACK|0x08, text)
		if i%1000 == 0 && time.Now().After(next) {
			look()
			next = time.Now().Add(100 * time.Millisecond)
		}
	}
	st := p.status(t)
	t.Logf("%.0f packets/s; cost %.3f of a core at most, under the budget from %v on (above it last at %v), 1 in %d at most; in the end 1 in %d for %.3f",
		float64(w.sent)/length.Seconds(), dearest, under, highest, coarsest, st.Sampling.KernelEvery, st.CPURatio)
	if coarsest == 1 {
		t.Errorf("every packet was looked at for %.3f of a core; the budget is %v", dearest, budget)
	}
	if st.CPURatio > budget {
		t.Errorf("%.3f of a core after %v; the budget is %v", st.CPURatio, length, budget)
	}
	end := time.Now()
	eventually(t, "every packet is looked at again", func() bool { return p.status(t).Sampling.KernelEvery == 1 })
	t.Logf("N = 1 again after %v", time.Since(end))
	if _, err := p.stop(t, unix.SIGTERM); err != nil {
		t.Errorf("stopped with %v\n%s", err, p.logText())
	}
}
