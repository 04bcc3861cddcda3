package top

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/internal/report"
)

// Sample is what there is to see at one moment. It never changes.
type Sample struct {
	Slow, Fast *report.Report // the windows of 60 s and 5 s
	Requests   uint64         // since the start, at all ports
	CPURatio   float64        // of the process that captures; 0: not known
	Warning    string         // what is wrong with what is seen, "" if nothing
}

// Sampler gives samples. One goroutine uses it.
type Sampler interface {
	// Sample returns what there is to see now; ErrNothing before the first
	// snapshot.
	Sample(ctx context.Context) (*Sample, error)
}

// ErrNothing means that there is nothing to see yet.
var ErrNothing = errors.New("nothing was captured yet")

// Messages to a Model beside those of bubbletea.
type (
	// SampleMsg is a new sample.
	SampleMsg struct{ *Sample }
	// TroubleMsg says that no sample could be had. The last one stays.
	TroubleMsg struct{ Err error }
	// NoticeMsg is a line to show from now on, such as the end of a file.
	NoticeMsg struct{ Text string }
)

// Feed sends a sample at once and then each interval until ctx ends.
func Feed(ctx context.Context, s Sampler, interval time.Duration, send func(tea.Msg)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		sample, err := s.Sample(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			send(SampleMsg{sample})
		case !errors.Is(err, ErrNothing):
			send(TroubleMsg{err})
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Engine samples an engine of this process.
type Engine struct {
	Latest func() *pipeline.Snapshot // nil before the first one
	Node   string
	Top    int // keys in a report
}

// Sample implements Sampler.
func (e *Engine) Sample(context.Context) (*Sample, error) {
	s := e.Latest()
	if s == nil {
		return nil, ErrNothing
	}
	out := &Sample{Slow: s.Report(e.Node, e.Top), Fast: s.FastReport(e.Node, e.Top)}
	for i := range s.Ports {
		out.Requests += s.Ports[i].Requests
	}
	if s.Panics > 0 {
		out.Warning = "a bug of hotsniff was survived; connections were lost from sight"
	}
	return out, nil
}
