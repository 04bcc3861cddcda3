//go:build race

package capture

// raceEnabled skips the allocation gates: the race detector allocates.
const raceEnabled = true
