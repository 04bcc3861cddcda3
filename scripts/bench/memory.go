package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// memory is the resident memory of a process, by what it holds, in bytes.
type memory struct {
	rss, pss int64
	ring     int64 // shared with the kernel's packet socket
	binary   int64 // pages of the program file, which all its processes share
	library  int64 // pages of other files
	anon     int64 // everything else: heap, stacks, tables
}

// memoryOf reads /proc/PID/smaps.
func memoryOf(pid int) (*memory, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return nil, err
	}
	m := &memory{}
	name := ""
	var rss, anon int64
	end := func() {
		m.rss += rss
		m.anon += anon
		switch file := rss - anon; {
		case strings.HasPrefix(name, "socket:"):
			m.ring += file
		case name == exe:
			m.binary += file
		default:
			m.library += file
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
			m.pss += kib << 10
		case "Anonymous:":
			anon = kib << 10
		}
	}
	end()
	return m, in.Err()
}

// String returns the parts in MiB.
func (m *memory) String() string {
	return fmt.Sprintf("RSS %.1f MiB (Pss %.1f): ring %.1f, program %.1f, libraries %.1f, anonymous %.1f",
		mebibytes(m.rss), mebibytes(m.pss), mebibytes(m.ring), mebibytes(m.binary), mebibytes(m.library), mebibytes(m.anon))
}
