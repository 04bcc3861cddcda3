package pipeline

import (
	"context"
	"strings"
	"testing"

	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

// panicSource hands out packets and panics at some of its calls.
type panicSource struct {
	packets
	calls int
	at    func(call int) bool
}

func (s *panicSource) Next(p *capture.Packet) error {
	s.calls++
	if s.at(s.calls) {
		panic("a bug")
	}
	return s.packets.Next(p)
}

func panicEngine(t *testing.T, requests int, at func(int) bool) (*Engine, *[]string) {
	t.Helper()
	src := &panicSource{at: at}
	for i := range requests {
		flow := testkit.NewFlow(clientAddr(uint16(1000+i)), serverAddr)
		for _, frame := range [][]byte{flow.Frame(testkit.SYN, nil), flow.Frame(testkit.ACK, testkit.AppendCommand(nil, "GET", "k"))} {
			src.all = append(src.all, capture.Packet{Data: append([]byte(nil), frame...), WireLen: len(frame), T: 1e18, Link: capture.LinkTypeEthernet})
		}
	}
	var said []string
	e, err := New(Config{Whole: true, OnPanic: func(v any, stack []byte) { said = append(said, v.(string)+string(stack)) }}, src)
	if err != nil {
		t.Fatal(err)
	}
	return e, &said
}

func TestAPanicIsSurvivedCountedAndSaidOnce(t *testing.T) {
	e, said := panicEngine(t, 10, func(call int) bool { return call == 5 || call == 12 })
	if err := e.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	s := e.Latest()
	if s.Panics != 2 || len(*said) != 1 || !strings.Contains((*said)[0], "a bug") || !strings.Contains((*said)[0], "panic_test.go") {
		t.Errorf("got %d panics, said %q; want 2, said once with the stack", s.Panics, *said)
	}
	// Both panics came between two connections: every request counts.
	if r := s.Report("", 0); r.Requests != 10 || r.Capture.Connections != 10 {
		t.Errorf("got %d requests of %d connections; want 10 of 10", r.Requests, r.Capture.Connections)
	}
}

func TestAPanicAtEveryPacketEnds(t *testing.T) {
	e, _ := panicEngine(t, 1, func(int) bool { return true })
	e.cfg.OnPanic = func(any, []byte) {}
	if e.Run(context.Background()) == nil {
		t.Error("got no error; want the end of an engine that makes no progress")
	}
}
