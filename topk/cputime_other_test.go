//go:build !unix

package topk

func cpuNanos() float64 { return 0 }
