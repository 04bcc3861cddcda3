package pipeline

import (
	"math"
	"testing"

	"github.com/hotsniff/hotsniff/internal/testkit"
)

// TestReplyBytesOfPipelinesAreSharedOut: what a client acknowledges after a
// pipeline cannot be told apart; each request gets its part on average, and
// the figure is marked.
func TestReplyBytesOfPipelinesAreSharedOut(t *testing.T) {
	e := newEngine(t, Config{Whole: true, Top: AllKeys})
	c := newClient(e, 50000)
	pipeline := testkit.AppendCommand(testkit.AppendCommand(nil, "GET", "a"), "GET", "b")
	const turns, replies = 4000, 1000
	for range turns {
		c.send(testkit.ACK, pipeline)
		c.flow.Answered(replies - 5) // send adds 5
	}
	for range 10 { // one request a turn: exact
		c.send(testkit.ACK, testkit.AppendCommand(nil, "GET", "alone"))
	}
	c.send(testkit.ACK, testkit.AppendCommand(nil, "PING"))
	e.finish()
	r := e.Latest().Report("", 0)
	for i := range r.Keys {
		k := &r.Keys[i]
		want, estimated := float64(turns*replies/2), true
		if k.Key == "alone" {
			want, estimated = 10*5, false
		}
		if got := float64(k.ReplyBytes); math.Abs(got-want) > 0.05*want || k.ReplyEstimated != estimated {
			t.Errorf("%s: got %v reply bytes, estimated %v; want %v within 5 %%, %v", k.Key, got, k.ReplyEstimated, want, estimated)
		}
	}
	if len(r.Keys) != 3 {
		t.Errorf("got %d keys; want 3", len(r.Keys))
	}
}
