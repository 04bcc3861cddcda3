package pipeline

import (
	"testing"

	"github.com/hotsniff/hotsniff/internal/testkit"
)

// TestOnSnapshotIsCalledOnceATick, when Latest returns the new snapshot
// already, and never for a packet.
func TestOnSnapshotIsCalledOnceATick(t *testing.T) {
	var e *Engine
	var seen []*Snapshot
	e = newEngine(t, Config{OnSnapshot: func() { seen = append(seen, e.Latest()) }})
	c := newClient(e, 50000)
	for tick := range int64(4) {
		e.advance(1e18 + tick*int64(TickEvery))
		for range 100 {
			c.send(testkit.ACK, testkit.AppendCommand(nil, "GET", "key"))
		}
	}
	if len(seen) != 4 {
		t.Fatalf("called %d times at 4 ticks", len(seen))
	}
	for i, s := range seen {
		if s == nil || i > 0 && s == seen[i-1] {
			t.Errorf("tick %d: Latest did not return a new snapshot", i)
		}
	}
	e.finish()
	if len(seen) != 5 || seen[4] != e.Latest() {
		t.Error("the last snapshot was not told")
	}
}
