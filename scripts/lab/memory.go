package lab

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Memory is the resident memory of a process, by what it holds, in bytes.
type Memory struct {
	RSS, Pss int64
	Ring     int64 // shared with the kernel's packet socket
	Program  int64 // pages of the program file, which all its processes share
	Library  int64 // pages of other files
	Anon     int64 // everything else: heap, stacks, tables
}

// MemoryOf reads /proc/PID/smaps.
func MemoryOf(pid int) (*Memory, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return nil, err
	}
	m := &Memory{}
	name := ""
	var rss, anon int64
	end := func() {
		m.RSS += rss
		m.Anon += anon
		switch file := rss - anon; {
		case strings.HasPrefix(name, "socket:"):
			m.Ring += file
		case name == exe:
			m.Program += file
		default:
			m.Library += file
		}
		rss, anon = 0, 0
	}
	in := bufio.NewScanner(f)
	for in.Scan() {
		words := strings.Fields(in.Text())
		if len(words) == 0 {
			continue
		}
		if !strings.HasSuffix(words[0], ":") { // a new mapping: address, rights, offset, device, inode, name
			end()
			name = strings.Join(words[min(5, len(words)):], " ")
			continue
		}
		if len(words) < 2 {
			continue
		}
		kib, _ := strconv.ParseInt(words[1], 10, 64)
		switch words[0] {
		case "Rss:":
			rss = kib << 10
		case "Pss:":
			m.Pss += kib << 10
		case "Anonymous:":
			anon = kib << 10
		}
	}
	end()
	return m, in.Err()
}

// String returns the parts in MiB.
func (m *Memory) String() string {
	return fmt.Sprintf("RSS %.1f MiB (Pss %.1f): ring %.1f, program %.1f, libraries %.1f, anonymous %.1f",
		MiB(m.RSS), MiB(m.Pss), MiB(m.Ring), MiB(m.Program), MiB(m.Library), MiB(m.Anon))
}

// MiB returns n bytes in MiB.
func MiB(n int64) float64 { return float64(n) / (1 << 20) }
