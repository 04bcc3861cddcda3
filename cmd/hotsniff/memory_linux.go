package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// unmapProgram lets go of the resident pages of the program file. The kernel
// maps them in clusters around each one that is touched, so that after the
// start nearly all of the file counts as memory in use; what is needed comes
// back from the page cache at the next access, a microsecond each.
//
// Only mappings that cannot be written and hold no page of their own are
// touched: those are the file and nothing else.
func unmapProgram() {
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer maps.Close()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	var from, to uint64
	ours := false
	in := bufio.NewScanner(maps)
	for in.Scan() {
		words := strings.Fields(in.Text())
		switch {
		case len(words) >= 5 && !strings.HasSuffix(words[0], ":"):
			ours = len(words) >= 6 && strings.Join(words[5:], " ") == program && !strings.Contains(words[1], "w")
			low, high, _ := strings.Cut(words[0], "-")
			from, _ = strconv.ParseUint(low, 16, 64)
			to, _ = strconv.ParseUint(high, 16, 64)
		case ours && len(words) == 3 && words[0] == "Anonymous:" && words[1] == "0" && to > from:
			unix.Syscall(unix.SYS_MADVISE, uintptr(from), uintptr(to-from), unix.MADV_DONTNEED)
			ours = false
		}
	}
}
