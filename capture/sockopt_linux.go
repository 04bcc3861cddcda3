//go:build cgo

package capture

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// packetSockets lists the packet sockets among the descriptors of this process.
// libpcap does not hand its socket out; comparing before and after it opened
// one finds it.
func packetSockets() (map[int]bool, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, err
	}
	sockets := make(map[int]bool)
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err == nil && domain == unix.AF_PACKET {
			sockets[fd] = true
		}
	}
	return sockets, nil
}

// newPacketSocket returns the one packet socket that was not there before.
func newPacketSocket(before map[int]bool) (int, error) {
	after, err := packetSockets()
	if err != nil {
		return -1, err
	}
	found := -1
	for fd := range after {
		if before[fd] {
			continue
		}
		if found >= 0 {
			return -1, errors.New("two new packet sockets, cannot tell which is ours")
		}
		found = fd
	}
	if found < 0 {
		return -1, errors.New("no new packet socket")
	}
	return found, nil
}

// ignoreOutgoing keeps packets that this host sends out of the capture before
// they cost anything (Linux 4.20 and later). On the loopback device nothing is
// lost: there every packet passes twice, and libpcap drops the outgoing copy
// anyway.
func ignoreOutgoing(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		return fmt.Errorf("set PACKET_IGNORE_OUTGOING: %w", err)
	}
	return nil
}

// attachFilter replaces the kernel's filter and leaves libpcap's own copy, by
// which it filters again in user space what was in the ring before, as it is.
func attachFilter(fd int, code []bpfInstruction) error {
	program := make([]unix.SockFilter, len(code))
	for i, c := range code {
		program[i] = unix.SockFilter{Code: c.code, Jt: c.jt, Jf: c.jf, K: c.k}
	}
	err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	if err != nil {
		return fmt.Errorf("set SO_ATTACH_FILTER: %w", err)
	}
	return nil
}

// attachedFilter returns the program that the kernel runs on the socket, as
// libpcap adapted it: on the "any" device offsets and direction are not those
// that the compiler wrote. The length counts instructions, not bytes
// (socket(7), SO_GET_FILTER).
func attachedFilter(fd int) ([]bpfInstruction, error) {
	program := make([]unix.SockFilter, maxBPF)
	n := uint32(len(program))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_GET_FILTER,
		uintptr(unsafe.Pointer(&program[0])), uintptr(unsafe.Pointer(&n)), 0)
	if errno != 0 {
		return nil, fmt.Errorf("read SO_GET_FILTER: %w", errno)
	}
	if n == 0 || int(n) > len(program) {
		return nil, errors.New("no filter in the kernel")
	}
	out := make([]bpfInstruction, n)
	for i, c := range program[:n] {
		out[i] = bpfInstruction{c.Code, c.Jt, c.Jf, c.K}
	}
	return out, nil
}

// boundInterface returns the index of the interface that the socket listens
// to, 0 for all of them.
func boundInterface(fd int) (int, error) {
	address, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	link, ok := address.(*unix.SockaddrLinklayer)
	if !ok {
		return 0, errors.New("not a packet socket")
	}
	return link.Ifindex, nil
}
