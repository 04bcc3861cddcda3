//go:build !linux

package main

import "time"

// threadCPUTime is nil where a thread's CPU time is not known: the budget then
// has no effect, and drops have none either.
var threadCPUTime func() time.Duration
