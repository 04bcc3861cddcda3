package main

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	"github.com/hotsniff/hotsniff/internal/pipeline"
)

const (
	// gcPercent trades a little CPU for memory: little is allocated while
	// packets go by, a snapshot four times a second, so a collection takes
	// place every few seconds anyway.
	gcPercent = 25
	// memoryLimit is where the collector works harder: what is promised
	// whatever arrives (128 MiB), less the ring of 32 MiB and the program.
	memoryLimit = 72 << 20
	// portMemory is added for each port beyond pipeline.FullPorts, which fit
	// that limit.
	portMemory = 2 << 20
	// settleAfter is when the start is over: configuration, connections to
	// Redis and the first scrape have come and gone.
	settleAfter = 15 * time.Second
)

// boundMemory tells the collector what the daemon may use, unless whoever
// started it did so. When the start is over it gives back, once, what only the
// start needed: garbage, and the pages of the program file that it mapped.
func boundMemory(ctx context.Context, ports int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(memoryLimit + portMemory*max(min(ports, pipeline.MaxPorts)-pipeline.FullPorts, 0)))
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(settleAfter):
	}
	debug.FreeOSMemory()
	unmapProgram()
}
