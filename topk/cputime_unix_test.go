//go:build unix

package topk

import "syscall"

// cpuNanos is the processor time this process has used. Unlike the time of the
// clock it does not grow while others use the processor.
func cpuNanos() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano() + u.Stime.Nano())
}
