package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hotsniff/hotsniff/capture"
)

const (
	// paceStep is the longest sleep of a replay: an idle stretch of the file
	// then passes in steps, as a read timeout lets time pass in a capture.
	paceStep = 100 * time.Millisecond

	// paceSlack is how far ahead of its time a packet may be: sleeping for less
	// costs more than it gives.
	paceSlack = 2 * time.Millisecond
)

// parseSpeed reads the speed of a replay; 0 means without waiting.
func parseSpeed(text string) (float64, error) {
	if text == "max" {
		return 0, nil
	}
	v, err := strconv.ParseFloat(strings.TrimSuffix(text, "x"), 64)
	if err != nil || !(v >= 0.001 && v <= 1e6) {
		return 0, fmt.Errorf("want a factor as in 4x, 0.001 to 1000000, or max, not %q", text)
	}
	return v, nil
}

// pacedSource hands the packets of a file out at the times at which they were
// captured, times a factor. While it waits it returns capture.ErrTimeout with
// the packet time of now, as a live source does.
type pacedSource struct {
	capture.Source
	speed   float64 // 0: no waiting
	pending capture.Packet
	waiting bool // pending is the next packet
	started bool
	first   int64     // packet time at begin
	begin   time.Time // when the first packet was handed out
	stop    chan struct{}
	stopped func() // closes stop, once
}

func newPacedSource(src capture.Source, speed float64) *pacedSource {
	s := &pacedSource{Source: src, speed: speed, stop: make(chan struct{})}
	s.stopped = sync.OnceFunc(func() { close(s.stop) })
	return s
}

// Next implements capture.Source.
func (s *pacedSource) Next(p *capture.Packet) error {
	if s.speed == 0 {
		return s.Source.Next(p)
	}
	if !s.waiting {
		if err := s.Source.Next(&s.pending); err != nil {
			return err
		}
		s.waiting = true
	}
	if !s.started {
		s.started, s.first, s.begin = true, s.pending.T, time.Now()
	}
	ahead := s.ahead()
	if ahead < paceSlack {
		return s.hand(p)
	}
	timer := time.NewTimer(min(ahead, paceStep))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.stop:
		return s.Source.Next(p) // which is at its end
	}
	if ahead > paceStep {
		p.T = s.first + int64(float64(time.Since(s.begin))*s.speed)
		p.T = min(p.T, s.pending.T)
		return capture.ErrTimeout
	}
	return s.hand(p)
}

// hand gives the pending packet out. Its data is the source's until the next
// call of Next.
func (s *pacedSource) hand(p *capture.Packet) error {
	s.waiting = false
	*p = s.pending
	return nil
}

// ahead is how long it is until the pending packet is due.
func (s *pacedSource) ahead() time.Duration {
	due := float64(s.pending.T-s.first) / s.speed
	return time.Duration(min(due, math.MaxInt64/4)) - time.Since(s.begin)
}

// Stop implements capture.Source.
func (s *pacedSource) Stop() {
	s.Source.Stop()
	s.stopped()
}

// Close implements capture.Source.
func (s *pacedSource) Close() error {
	err := s.Source.Close()
	s.stopped()
	return err
}
