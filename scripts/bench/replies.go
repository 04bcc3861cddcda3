package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hotsniff/hotsniff/internal/testkit"
)

const (
	replyPackets = 200_000 // a step: a fifth of a second
	replyBatch   = 64      // frames a system call: Redis' own calls are not what is measured
	replyBytes   = 100
	replyPort    = 6379

	repliesAllowed = 40 * time.Second
)

// threadTime is the CPU time of the calling thread in nanoseconds.
func threadTime() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return ts.Nano()
}

// rawSender sends frames out of a device, in batches.
type rawSender struct {
	fd   int
	msgs []mmsghdr
	iov  []unix.Iovec
}

// mmsghdr is struct mmsghdr of sendmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
	_   [4]byte
}

func newRawSender(device string, batch int) (*rawSender, error) {
	dev, err := net.InterfaceByName(device)
	if err != nil {
		return nil, err
	}
	// Protocol 0: this socket receives nothing, and costs nobody anything.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: dev.Index}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &rawSender{fd: fd, msgs: make([]mmsghdr, batch), iov: make([]unix.Iovec, batch)}, nil
}

func (s *rawSender) close() { unix.Close(s.fd) }

// send sends all frames, of which there are at most as many as a batch holds.
func (s *rawSender) send(frames [][]byte) error {
	for i, f := range frames {
		s.iov[i].Base = &f[0]
		s.iov[i].SetLen(len(f))
		s.msgs[i].hdr.Iov = &s.iov[i]
		s.msgs[i].hdr.SetIovlen(1)
	}
	for done := 0; done < len(frames); {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.msgs[done])),
			uintptr(len(frames)-done), 0, 0, 0)
		if errno == unix.EINTR || errno == unix.EAGAIN || errno == unix.ENOBUFS {
			continue
		}
		if errno != 0 {
			return fmt.Errorf("sendmmsg: %w", errno)
		}
		done += int(n)
	}
	return nil
}

// replyFrames are replies of a server to a client whose address nobody has: the
// other end of the device throws them away at once.
func replyFrames() [][]byte {
	server, client := netip.MustParseAddr("10.99.0.1"), netip.MustParseAddr("10.99.0.2")
	f := testkit.NewFlow(netip.AddrPortFrom(server, replyPort), netip.AddrPortFrom(client, 40000))
	payload := testkit.AppendCommand(nil, string(make([]byte, replyBytes)))[4:] // "$100..."
	frames := make([][]byte, replyBatch)
	for i := range frames {
		frames[i] = stranger(append([]byte(nil), f.Frame(testkit.ACK, payload)...))
	}
	return frames
}

// stranger addresses an Ethernet frame to a host that is not there.
func stranger(frame []byte) []byte {
	copy(frame, []byte{2, 0, 0, 0, 0, 0x99, 2, 0, 0, 0, 0, 0x01})
	return frame
}

// replies measures what sending a reply costs the thread that sends it, with
// and without somebody who captures on the device it leaves through.
func replies(ctx context.Context, s *settings, t *table) error {
	p, err := newPair("hsr")
	if err != nil {
		return err
	}
	defer p.close()
	sender, err := newRawSender(p.name, replyBatch)
	if err != nil {
		return err
	}
	defer sender.close()
	frames := replyFrames()
	result := make(map[string][]float64)
	cases := []struct {
		name  string
		start func() (stop func(), err error)
	}{
		{"base", func() (func(), error) { return func() {}, nil }},
		{"hotsniff", func() (func(), error) {
			var d *testkit.Daemon
			err := onCPU(s.cpus.observer, func() (err error) {
				d, err = testkit.StartDaemon(s.bin, replyPort, "--interface", p.name)
				return err
			})
			if err != nil {
				return nil, err
			}
			return d.Kill, nil
		}},
		{"base again", func() (func(), error) { return func() {}, nil }},
		{"tcpdump", func() (func(), error) {
			var b *background
			err := onCPU(s.cpus.observer, func() (err error) {
				b, err = startUntil(ctx, "listening on", "tcpdump", "-i", p.name, "-s", "256", "-w", "/dev/null", "tcp", "port", strconv.Itoa(replyPort))
				return err
			})
			if err != nil {
				return nil, err
			}
			return b.stop, nil
		}},
	}
	for round, begin := 0, time.Now(); s.more(round, begin, repliesAllowed); round++ {
		for _, c := range cases {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			stop, err := c.start()
			if err != nil {
				return err
			}
			time.Sleep(100 * time.Millisecond)
			var ns float64
			err = onCPU(s.cpus.server, func() error {
				begin := threadTime()
				for range replyPackets / replyBatch {
					if err := sender.send(frames); err != nil {
						return err
					}
				}
				ns = float64(threadTime()-begin) / (replyPackets / replyBatch * replyBatch)
				return nil
			})
			stop()
			if err != nil {
				return err
			}
			result[c.name] = append(result[c.name], ns)
		}
	}
	base := means(result["base"], result["base again"])
	control := differences(result["base again"], result["base"])
	t.add(line{what: "c. a reply, CPU of its sender: added by hotsniff", unit: "ns", goal: atMost(60), control: control, differs: true,
		values: differences(result["hotsniff"], base)},
		line{what: "c. a reply, CPU of its sender: added by tcpdump (both directions)", unit: "ns", control: control, differs: true,
			values: differences(result["tcpdump"], base)},
		line{what: "c. a reply, CPU of its sender: without anybody", unit: "ns", values: base})
	return nil
}
