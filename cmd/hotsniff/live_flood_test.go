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

	"golang.org/x/sys/unix"

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
	const far = "hsnflood1"
	device = "hsnflood0"
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
	w.frame = testkit.AppendSegment(w.frame[:0], from, netip.MustParseAddrPort("10.0.0.1:6379"), seq, ack, flags, []byte(payload))
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
	{"SYNs", 600_000, func(w *floodWire, i int) {
		w.send(floodClient(uint32(i), uint16(i*7)), uint32(i)*2654435761, 0, testkit.SYN, "")
	}},
	{"100,000 connections", 600_000, func(w *floodWire, i int) {
		const request = "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n"
		turn := uint32(i / 100_000)
		w.send(floodClient(uint32(i%100_000), 5000), 1+turn*uint32(len(request)), 1+turn*5, testkit.ACK|0x08, request)
	}},
	{"packets of one byte", 600_000, func(w *floodWire, i int) {
		const stream = "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n"
		turn := uint32(i / 10_000)
		w.send(floodClient(uint32(i%10_000), 6000), 1+turn, 1, testkit.ACK, stream[int(turn)%len(stream):][:1])
	}},
	{"packets of one byte out of order", 600_000, func(w *floodWire, i int) {
		w.send(floodClient(uint32(i%10_000), 7000), 1+uint32(i/10_000)*2, 1, testkit.ACK, "*")
	}},
	{"requests that never end", 400_000, func(w *floodWire, i int) {
		w.send(floodClient(uint32(i), 5001), 1, 1, testkit.ACK, "*1000000\r\n$4\r\nMGET\r\n$400\r\n"+strings.Repeat("k", 400)+"\r\n$536870912\r\nx")
	}},
	{"long keys that are all distinct", 300_000, func(w *floodWire, i int) {
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
