package doctor

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	// maxProcBytes bounds one file of /proc: half a million sockets.
	maxProcBytes = 64 << 20
	// maxPIDs bounds the processes looked at for the owner of a socket; more
	// than a machine usually has (kernel.pid_max is 32,768 by default).
	maxPIDs = 65536
	// capNetRaw is the number of CAP_NET_RAW (capability.h).
	capNetRaw = 13
)

// readProc reads a file below /proc, or what stands in for it in tests.
func readProc(elem ...string) ([]byte, error) {
	f, err := os.Open(filepath.Join(elem...))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxProcBytes))
}

// processStatus is what /proc/self/status says of rights.
type processStatus struct {
	uid                             int // effective
	effective, permitted, bounding  uint64
	hasEffective, hasPerm, hasBound bool
}

var errStatus = errors.New("no capabilities in /proc/self/status")

// parseStatus reads the lines Uid, CapEff, CapPrm and CapBnd (proc(5)).
func parseStatus(text []byte) (processStatus, error) {
	s := processStatus{uid: -1}
	for line := range bytes.Lines(text) {
		name, value, _ := strings.Cut(string(line), ":")
		fields := strings.Fields(value)
		if len(fields) == 0 {
			continue
		}
		mask, err := strconv.ParseUint(fields[0], 16, 64)
		switch name {
		case "Uid":
			if len(fields) > 1 {
				if uid, err := strconv.Atoi(fields[1]); err == nil {
					s.uid = uid
				}
			}
		case "CapEff":
			s.effective, s.hasEffective = mask, err == nil
		case "CapPrm":
			s.permitted, s.hasPerm = mask, err == nil
		case "CapBnd":
			s.bounding, s.hasBound = mask, err == nil
		}
	}
	if !s.hasEffective || !s.hasPerm || !s.hasBound {
		return s, errStatus
	}
	return s, nil
}

// listener is a TCP socket that listens.
type listener struct {
	addr  netip.AddrPort
	inode string
}

// tcpListen is the state of a listening socket in /proc/net/tcp.
const tcpListen = "0A"

// parseTCP returns the listening sockets of /proc/net/tcp or tcp6. Lines that
// are not as expected are passed over.
func parseTCP(text []byte) (out []listener) {
	for line := range bytes.Lines(text) {
		f := strings.Fields(string(line))
		if len(f) < 10 || f[3] != tcpListen {
			continue
		}
		if addr, ok := parseHexAddr(f[1]); ok {
			out = append(out, listener{addr, f[9]})
		}
	}
	return out
}

// parseHexAddr reads 0100007F:18EB: the address in words of the machine's byte
// order (little endian on all that Go's Linux ports of hotsniff run on), the
// port in hex.
func parseHexAddr(text string) (netip.AddrPort, bool) {
	ip, port, ok := strings.Cut(text, ":")
	if !ok {
		return netip.AddrPort{}, false
	}
	p, err := strconv.ParseUint(port, 16, 16)
	b, err2 := hex.DecodeString(ip)
	if err != nil || err2 != nil || len(b) != 4 && len(b) != 16 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		b[i], b[i+1], b[i+2], b[i+3] = b[i+3], b[i+2], b[i+1], b[i]
	}
	addr, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(addr.Unmap(), uint16(p)), true
}

// serverNames are what the names of unix sockets of servers that speak RESP
// hold.
var serverNames = []string{"redis", "valkey", "keydb", "dragonfly", "kvrocks"}

// unixListening is the flag of a listening socket in /proc/net/unix
// (__SO_ACCEPTCON).
const unixListening = 0x10000

// parseUnix returns the paths of the listening unix sockets of such servers.
func parseUnix(text []byte) (paths []string) {
	for line := range bytes.Lines(text) {
		f := strings.Fields(string(line))
		if len(f) < 8 {
			continue
		}
		flags, err := strconv.ParseUint(f[3], 16, 64)
		if err != nil || flags&unixListening == 0 {
			continue
		}
		name := strings.Join(f[7:], " ") // a path may hold spaces
		base := strings.ToLower(path.Base(name))
		for _, s := range serverNames {
			if strings.Contains(base, s) && !strings.Contains(base, "sentinel") {
				paths = append(paths, name)
				break
			}
		}
	}
	return paths
}

// listeners returns the listening TCP sockets of this network namespace.
func listeners(proc string) ([]listener, error) {
	v4, err := readProc(proc, "net", "tcp")
	if err != nil {
		return nil, err
	}
	out := parseTCP(v4)
	if v6, err := readProc(proc, "net", "tcp6"); err == nil { // missing where IPv6 is off
		out = append(out, parseTCP(v6)...)
	}
	return out, nil
}

// process is the owner of a socket.
type process struct {
	pid  int
	name string
}

// owner finds the process that holds a socket; false when it is another user's
// or another container's.
func owner(proc, inode string) (process, bool) {
	want := "socket:[" + inode + "]"
	dir, err := os.Open(proc)
	if err != nil {
		return process{}, false
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(maxPIDs)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		fds, err := os.ReadDir(filepath.Join(proc, name, "fd"))
		if err != nil {
			continue
		}
		for _, fd := range fds {
			if to, err := os.Readlink(filepath.Join(proc, name, "fd", fd.Name())); err == nil && to == want {
				return process{pid, command(proc, name)}, true
			}
		}
	}
	return process{}, false
}

// command returns the name of a process.
func command(proc, pid string) string {
	comm, err := readProc(proc, pid, "comm")
	if err != nil {
		return "unknown"
	}
	line, _, _ := bufio.NewReader(bytes.NewReader(comm)).ReadLine()
	return string(line)
}
