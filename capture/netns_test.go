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
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// inNamespace runs body as a subtest on a thread in a network namespace of its
// own, where no packet is but those of the test. What body makes there goes with
// it. Sources must be opened and read on the goroutine of body.
func inNamespace(t *testing.T, name string, body func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		needCapture(t)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Skipf("cannot make a network namespace: %v", err)
		}
		// Neighbour discovery would send packets of its own.
		os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0o644)
		body(t)
	})
}

// ip runs the ip tool in the namespace of this thread.
func ip(t *testing.T, arguments string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(arguments)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", arguments, err, out)
	}
}

// addVeth makes the connected devices hot and gun, both up. Packets sent into
// gun arrive at hot.
func addVeth(t *testing.T) {
	t.Helper()
	ip(t, "link add hot type veth peer name gun")
	ip(t, "link set hot up")
	ip(t, "link set gun up")
}

// received is how many packets the device got, by the kernel's own count.
func received(t *testing.T, name string) int {
	t.Helper()
	file, err := os.Open("/proc/thread-self/net/dev")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), name+":"); ok {
			var bytes, packets int
			fmt.Sscan(rest, &bytes, &packets)
			return packets
		}
	}
	t.Fatalf("no device %s", name)
	return 0
}

// gun sends frames at a device as fast as the kernel takes them: as many in one
// system call as sendmmsg takes.
type gun struct {
	t        *testing.T
	fd       int
	frames   [gunBatch][]byte
	vectors  [gunBatch]unix.Iovec
	messages [gunBatch]struct {
		header unix.Msghdr
		length uint32
		_      [4]byte
	}
	sent atomic.Int64
}

const gunBatch = 64

// newGun loads copies of the frame.
func newGun(t *testing.T, device string, frame []byte) *gun {
	t.Helper()
	g := tryGun(device, frame)
	if g == nil {
		t.Fatalf("cannot send into %s", device)
	}
	g.t = t
	t.Cleanup(g.close)
	return g
}

// tryGun is newGun; it returns nil when the device is not there.
func tryGun(device string, frame []byte) *gun {
	to, err := net.InterfaceByName(device)
	if err != nil {
		return nil
	}
	g := &gun{}
	if g.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0); err != nil {
		return nil
	}
	if err := unix.Bind(g.fd, &unix.SockaddrLinklayer{Ifindex: to.Index}); err != nil {
		g.close()
		return nil
	}
	for i := range g.frames {
		g.frames[i] = append([]byte(nil), frame...)
		g.vectors[i].Base = &g.frames[i][0]
		g.vectors[i].SetLen(len(frame))
		g.messages[i].header.Iov = &g.vectors[i]
		g.messages[i].header.Iovlen = 1
	}
	return g
}

func (g *gun) close() { unix.Close(g.fd) }

// try sends one packet, if the device takes it.
func (g *gun) try() { unix.Write(g.fd, g.frames[0]) }

// fire sends n packets.
func (g *gun) fire(n int) {
	for n > 0 {
		done, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(g.fd),
			uintptr(unsafe.Pointer(&g.messages[0])), uintptr(min(n, gunBatch)), 0, 0, 0)
		if errno != 0 && !errors.Is(errno, unix.ENOBUFS) && errno != unix.EINTR {
			g.t.Errorf("sendmmsg: %v", errno)
			return
		}
		if errno == 0 {
			n -= int(done)
			g.sent.Add(int64(done))
		}
	}
}

// fireAt sends this many packets a second, as evenly as the scheduler lets,
// until stop says so.
func (g *gun) fireAt(rate float64, stop *atomic.Bool) {
	start := time.Now()
	for !stop.Load() {
		due := int(time.Since(start).Seconds()*rate) - int(g.sent.Load())
		if due < 1 {
			time.Sleep(100 * time.Microsecond)
			continue
		}
		g.fire(min(due, gunBatch))
	}
}

// readRest counts what src still has, calling each for every packet.
func readRest(t *testing.T, src Source, each func(p *Packet)) (n int) {
	t.Helper()
	src.Stop()
	var p Packet
	for {
		switch err := src.Next(&p); {
		case err == nil:
			n++
			if each != nil {
				each(&p)
			}
		case err == io.EOF:
			return n
		case !errors.Is(err, ErrTimeout):
			t.Fatal(err)
		}
	}
}
