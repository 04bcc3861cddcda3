package pipeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/resp"
	"github.com/hotsniff/hotsniff/topk"
)

// Window is the length of the slow window: what reports cover.
const Window = 60 * time.Second

// Snapshot is what the engine knew at one tick. It owns all it holds and never
// changes. Counters are since the start.
type Snapshot struct {
	T       int64 // packet time of the tick
	Started int64 // packet time of the first packet, 0 when there was none
	Whole   bool  // the whole input is one window

	Ports        []PortSnapshot // by port number
	PortsRefused uint64         // requests to ports beyond MaxPorts
	ClockSteps   uint64         // times the clock was set back
	Panics       uint64         // bugs of ours that were survived

	Sampling  Sampling
	Capture   capture.Stats
	Verdicts  [capture.NumVerdicts]uint64
	Assembler capture.AssemblerStats
	Decoder   resp.Stats

	commandNames []string       // by resp.CommandID, shared by all snapshots
	pins         map[string]pin // never changed
}

// Sampling says which part of the traffic is looked at, and why.
type Sampling struct {
	Every     int     // the kernel keeps 1 packet in so many
	Budget    float64 // CPU ratio to stay under, 0 for no limit
	Fixed     bool    // Every was asked for
	Available bool    // the source can sample
	CPURatio  float64 // part of one core that the capture thread takes, over about a second
	// Coverage is the part of the bytes whose requests were seen in sampled
	// packets, about 1 unless clients send long pipelines of large values; 0
	// when none was sampled.
	Coverage float64
}

// PortSnapshot is one server port of a Snapshot.
type PortSnapshot struct {
	Port     uint16
	Slow     *topk.Snapshot // the last minute, or the whole input
	Fast     *topk.Snapshot // the last 5 s; nil when the whole input is one window
	Requests uint64         // since the start
	Accesses uint64
	Commands []uint64 // requests by resp.CommandID, since the start
	Window   []uint64 // the same in the last minute; all of them when the whole input is one window
}

// CommandName names a command of PortSnapshot.Commands or of a topk key.
func (s *Snapshot) CommandName(id uint16) string {
	if len(s.commandNames) == 0 {
		return "OTHER" // a snapshot that no engine made
	}
	if int(id) >= len(s.commandNames) {
		return s.commandNames[resp.CommandUnknown]
	}
	return s.commandNames[id]
}

// snapshot copies what the engine knows at time t.
func (e *Engine) snapshot(t int64) *Snapshot {
	s := &Snapshot{
		T: t, Started: e.started, Whole: e.cfg.Whole,
		PortsRefused: e.refused, ClockSteps: e.clock.steps, Panics: e.panics.total,
		Sampling: e.sampling(), Capture: e.src.Stats(), Verdicts: e.verdicts,
		Assembler: *e.asm.Stats(), Decoder: *e.dec.Stats(),
		commandNames: e.commandNames, pins: e.manual.pins,
	}
	for _, p := range e.active {
		s.Ports = append(s.Ports, p.snapshot(e.cfg.Top, &e.manual))
	}
	slices.SortFunc(s.Ports, func(a, b PortSnapshot) int { return int(a.Port) - int(b.Port) })
	return s
}

func (p *port) snapshot(top int, m *manual) PortSnapshot {
	s := PortSnapshot{Port: p.number, Requests: p.requests, Accesses: p.accesses, Commands: slices.Clone(p.commands)}
	if p.counter != nil {
		s.Slow, s.Window = p.counter.SnapshotTop(top), s.Commands
		return s
	}
	s.Slow = p.detector.SnapshotWindow(topk.WindowSlow, m.room(top))
	s.Fast = p.detector.SnapshotWindow(topk.WindowFast, m.room(top))
	m.judge(s.Slow, top)
	m.judge(s.Fast, top)
	s.Window = slices.Clone(p.history.sum)
	return s
}

// TopKeys returns the n keys of a port's snapshot that matter most, by
// accesses: those of the hot list before all others. keys is not changed.
func TopKeys(keys []topk.KeyStat, n int) []topk.KeyStat {
	if len(keys) <= n {
		return keys
	}
	top := slices.Clone(keys)
	slices.SortStableFunc(top, func(a, b topk.KeyStat) int { return listedFirst(a.Since != 0, b.Since != 0) })
	top = top[:n]
	slices.SortStableFunc(top, func(a, b topk.KeyStat) int { return cmp.Compare(b.Accesses, a.Accesses) })
	return top
}
