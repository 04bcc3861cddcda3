//go:build !linux

package doctor

import "runtime"

// Kernel says that only Linux can capture live.
func Kernel() Finding {
	return fail("kernel", "run hotsniff on Linux; 'hotsniff read' works everywhere", "%s cannot capture live", runtime.GOOS)
}
