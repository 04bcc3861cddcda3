package main

import (
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotsniff/hotsniff/capture"
)

// timedSource has packets of given times. Stop may be called from any
// goroutine, as capture.Source promises.
type timedSource struct {
	times []time.Duration
	next  int
	ended atomic.Bool
}

func (s *timedSource) Next(p *capture.Packet) error {
	if s.ended.Load() || s.next == len(s.times) {
		return io.EOF
	}
	p.T, p.WireLen = int64(s.times[s.next]), s.next
	s.next++
	return nil
}

func (s *timedSource) Stats() capture.Stats { return capture.Stats{} }
func (s *timedSource) Stop()                { s.ended.Store(true) }
func (s *timedSource) Close() error         { s.Stop(); return nil }

// TestPacedPacketsKeepTheirOrderAndTimePassesBetweenThem: while a packet is
// waited for, time goes on up to it and never beyond or back.
func TestPacedPacketsKeepTheirOrderAndTimePassesBetweenThem(t *testing.T) {
	second := time.Second
	s := newPacedSource(&timedSource{times: []time.Duration{100 * second, 100 * second, 130 * second, 129 * second, 131 * second}}, 100)
	begin := time.Now()
	var p capture.Packet
	var got []int
	last, steps := int64(0), 0
	for {
		err := s.Next(&p)
		if err == io.EOF {
			break
		}
		if errors.Is(err, capture.ErrTimeout) {
			steps++
			if p.T < last || p.T > int64(130*second) {
				t.Fatalf("time went to %v after %v", time.Duration(p.T), time.Duration(last))
			}
			last = p.T
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p.WireLen)
		last = max(last, p.T)
	}
	if len(got) != 5 || got[2] != 2 || got[4] != 4 {
		t.Errorf("got packets %v; want all in their order", got)
	}
	if steps == 0 {
		t.Error("no time passed in 30 s without packets")
	}
	// 31 s at a hundredfold: never faster than asked for, on any machine.
	if took := time.Since(begin); took < 300*time.Millisecond {
		t.Errorf("31 s at 100x took %v", took)
	}
}

func TestPacedSourceStopsWhileItWaits(t *testing.T) {
	s := newPacedSource(&timedSource{times: []time.Duration{0, time.Hour}}, 0.001)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var p capture.Packet
		for s.Next(&p) != io.EOF {
		}
	}()
	s.Stop()
	s.Stop()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("still waiting after Stop")
	}
}

func TestParseSpeed(t *testing.T) {
	f := func(in string, want float64, ok bool) {
		t.Helper()
		if got, err := parseSpeed(in); got != want || (err == nil) != ok {
			t.Errorf("parseSpeed(%q) = %v, %v; want %v, %v", in, got, err, want, ok)
		}
	}
	f("1x", 1, true)
	f("4", 4, true)
	f("0.5x", 0.5, true)
	f("max", 0, true)
	f("0x", 0, false)
	f("-1x", 0, false)
	f("NaN", 0, false)
	f("Inf", 0, false)
	f("fast", 0, false)
	f("", 0, false)
}
