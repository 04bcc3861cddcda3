//go:build race

package topk

// raceEnabled: the race detector slows counting about tenfold and allocates.
const raceEnabled = true
