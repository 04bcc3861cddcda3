package pipeline

import (
	"testing"

	"github.com/hotsniff/hotsniff/internal/testkit"
)

// TestRequestsLeaveTheWindow: requests that came before the first tick of
// their port belong to the second in which they came.
func TestRequestsLeaveTheWindow(t *testing.T) {
	e := newEngine(t, Config{})
	c := newClient(e, 50000)
	c.send(testkit.ACK, testkit.AppendCommand(nil, "GET", "key"))
	for _, step := range []struct {
		seconds int64
		want    uint64
	}{{30, 1}, {59, 1}, {61, 0}} {
		e.advance(1e18 + step.seconds*1e9)
		if got := e.Latest().Report("", 0).Requests; got != step.want {
			t.Errorf("after %d s: %d requests in the window; want %d", step.seconds, got, step.want)
		}
	}
	if got := e.Latest().Ports[0].Requests; got != 1 {
		t.Errorf("got %d requests since the start; want 1", got)
	}
}

// TestFirstRequestAfterSilence: a port whose first tick comes long after its
// first request does not report that request as new.
func TestFirstRequestAfterSilence(t *testing.T) {
	e := newEngine(t, Config{})
	c := newClient(e, 50000)
	c.send(testkit.ACK, testkit.AppendCommand(nil, "GET", "key"))
	e.advance(1e18 + 3600e9)
	if got := e.Latest().Report("", 0).Requests; got != 0 {
		t.Errorf("got %d requests in the window an hour later; want none", got)
	}
}
