package pipeline

import (
	"errors"
	"time"

	"github.com/hotsniff/hotsniff/capture"
)

// governor carries the loads of the ticks to the budget and its N to the
// source.
type governor struct {
	budget
	source   capture.Sampling // nil: the source cannot sample
	set      int              // N that the source has
	measured bool             // the fields below hold the last tick
	t        int64
	begin    time.Duration // CPU time at its begin and end
	end      time.Duration
	packets  uint64
	accesses uint64
	dropped  uint64
}

// govern begins: it sets the N that was asked for.
func (e *Engine) govern() error {
	g := &e.governor
	g.init(e.cfg.Budget)
	g.source, _ = e.src.(capture.Sampling)
	g.set = 1
	if g.every == 1 {
		return nil
	}
	if g.source == nil {
		return capture.ErrNoSampling
	}
	if err := g.source.SetSampleEvery(g.every); err != nil {
		return err
	}
	g.set = g.every
	return nil
}

// cpuTime returns the CPU time of this thread, 0 when it is not known.
func (e *Engine) cpuTime() time.Duration {
	if e.cfg.CPUTime == nil {
		return 0
	}
	return e.cfg.CPUTime()
}

// control ends a tick that began at the CPU time begin, with s as its snapshot.
func (e *Engine) control(t int64, begin time.Duration, s *Snapshot) {
	g := &e.governor
	if e.cfg.CPUTime == nil {
		return
	}
	packets, accesses, dropped := e.packets, e.accesses(), uint64(0)
	for i := range s.Capture.Interfaces {
		dropped += s.Capture.Interfaces[i].Dropped
	}
	if g.measured {
		n := g.tick(load{
			seconds: float64(t-g.t) / 1e9, cpu: (begin - g.begin).Seconds(), fixed: (g.end - g.begin).Seconds(),
			packets: float64(packets - g.packets), accesses: float64(accesses - g.accesses), dropped: float64(dropped - g.dropped),
		})
		g.apply(n)
	}
	g.measured, g.t, g.begin, g.end = true, t, begin, e.cpuTime()
	g.packets, g.accesses, g.dropped = packets, accesses, dropped
}

// accesses returns how many key accesses were decoded, not scaled.
func (e *Engine) accesses() uint64 { return e.dec.Stats().Accesses }

// apply gives the source its new N.
func (g *governor) apply(n int) {
	if n == g.set || g.source == nil {
		g.every = g.set
		return
	}
	if err := g.source.SetSampleEvery(n); err == nil {
		g.set = n
	} else if errors.Is(err, capture.ErrNoSampling) {
		g.source, g.set = nil, 1
	}
	g.every = g.set
}

// idle is called when no packet waits: those to come have the N of the source.
func (e *Engine) idle() {
	if !e.thin.on {
		return
	}
	n := max(e.governor.set, 1)
	e.weigh(n)
	e.thin.on = n > 1
}

// sampling says what is in force.
func (e *Engine) sampling() Sampling {
	g := &e.governor
	s := Sampling{Every: max(g.set, 1), Budget: g.cfg.Ratio, Fixed: g.cfg.Every > 0, Available: g.source != nil, CPURatio: g.ratio}
	if d := e.dec.Stats(); d.SampledBytes > 0 {
		s.Coverage = float64(d.SampledRequestBytes) / float64(d.SampledBytes)
	}
	return s
}
