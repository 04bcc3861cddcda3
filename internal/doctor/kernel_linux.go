package doctor

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// sampleProgram is the least program that samples: it keeps half of the packets
// (linux/filter.h: SKF_AD_RANDOM is at -0x1000 + 56).
var sampleProgram = []unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0xfffff000 + 56},
	{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 1},
	{Code: unix.BPF_RET | unix.BPF_A},
}

// Kernel says whether the kernel has what keeps the capture cheap. Without
// CAP_NET_RAW only its version can be told.
func Kernel() Finding {
	const name = "kernel"
	release := "unknown"
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		release = unix.ByteSliceToString(u.Release[:])
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0) // protocol 0: nothing arrives
	if err != nil {
		return warn(name, "see capability", "Linux %s; its features cannot be tried: %v", release, err)
	}
	defer unix.Close(fd)
	var missing []string
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		missing = append(missing, fmt.Sprintf("PACKET_IGNORE_OUTGOING (%v): replies cost more", err))
	}
	program := unix.SockFprog{Len: uint16(len(sampleProgram)), Filter: &sampleProgram[0]}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program); err != nil {
		missing = append(missing, fmt.Sprintf("SO_ATTACH_FILTER with rand (%v): no sampling", err))
	}
	if len(missing) > 0 {
		return warn(name, "use Linux 4.20 or later", "Linux %s lacks %s", release, strings.Join(missing, " and "))
	}
	return ok(name, "Linux %s ignores outgoing packets and samples", release)
}
