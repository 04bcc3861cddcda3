package page

import (
	"hash/maphash"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/internal/report"
)

const (
	// maxStreams bounds open streams: each has a connection and a goroutine,
	// 20 KB in all. More people than this do not look at one node.
	maxStreams = 100

	// lookEvery is how often a stream looks for a newer frame: as often as
	// there are snapshots.
	lookEvery = pipeline.TickEvery

	// frameEvery is the most time between two frames: people do not read
	// faster, and encoding is paid for beside Redis.
	frameEvery = time.Second

	// writeTimeout bounds the writing of one frame, after which a reader is
	// cut off.
	writeTimeout = 5 * time.Second
)

// window is one of the two windows of a report.
type window uint8

const (
	slow window = iota // 60 s
	fast               // 5 s
	numWindows
)

func parseWindow(text string) (window, bool) {
	switch text {
	case "", "60s":
		return slow, true
	case "5s":
		return fast, true
	}
	return 0, false
}

// frame is what is sent of one window at one moment. It never changes.
type frame struct {
	report *report.Report
	status Status
	event  []byte // as server-sent event
}

// hub makes the frames of all streams.
type hub struct {
	opt Options

	mu     sync.Mutex // held while a frame is made, so that each is made once
	last   [numWindows]*frame
	made   [numWindows]time.Time
	of     [numWindows]*pipeline.Snapshot // looked at last
	listed [numWindows]uint64             // hash of the hot list of last
	seed   maphash.Seed
}

// Gate lets so many streams in, and counts them. It outlives a Page that a
// reload of the configuration replaces. Its zero value is ready.
type Gate struct {
	open             atomic.Int64
	refused, dropped atomic.Uint64
}

// enter takes a place; false: there is none.
func (g *Gate) enter() bool {
	if g.open.Add(1) > maxStreams {
		g.open.Add(-1)
		g.refused.Add(1)
		return false
	}
	return true
}

func (g *Gate) leave() { g.open.Add(-1) }

// Streams says how the streams of the page are doing.
type Streams struct {
	Open    int64  `json:"streams"`
	Refused uint64 `json:"streams_refused"` // beyond the most that may be open
	Dropped uint64 `json:"streams_dropped"` // because their reader was too slow
}

func (g *Gate) stats() Streams {
	return Streams{g.open.Load(), g.refused.Load(), g.dropped.Load()}
}

// frame returns the newest frame of w, which may be as old as frameEvery
// unless the hot list has changed.
func (h *hub) frame(w window) (*frame, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.opt.Latest()
	changed := h.changed(w, s)
	if h.last[w] != nil && !changed && time.Since(h.made[w]) < frameEvery {
		return h.last[w], nil
	}
	if s == nil {
		s = &pipeline.Snapshot{} // nothing was captured yet
	}
	f := &frame{status: h.opt.Status()}
	if w == fast {
		f.report = s.FastReport(h.opt.Node, h.opt.Top)
	} else {
		f.report = s.Report(h.opt.Node, h.opt.Top)
	}
	text, err := encode(f.report, &f.status)
	if err != nil {
		return nil, err
	}
	f.event = append(append([]byte("data: "), text...), "\n\n"...)
	h.last[w], h.made[w] = f, time.Now()
	return f, nil
}

// changed reports whether the hot list of s is another one than that of the
// last snapshot that was looked at.
func (h *hub) changed(w window, s *pipeline.Snapshot) bool {
	if s == h.of[w] || s == nil {
		return false
	}
	h.of[w] = s
	var sum maphash.Hash
	sum.SetSeed(h.seed)
	for i := range s.Ports {
		p := &s.Ports[i]
		for j := range p.Slow.Keys {
			if k := &p.Slow.Keys[j]; k.Since != 0 {
				sum.WriteByte(byte(k.State))
				sum.WriteByte(byte(i))
				sum.Write(k.Key)
			}
		}
	}
	before := h.listed[w]
	h.listed[w] = sum.Sum64()
	return h.listed[w] != before
}

// serveEvents answers GET /api/v1/events with a stream of frames.
func (h *hub) serveEvents(w http.ResponseWriter, r *http.Request) {
	win, ok := parseWindow(r.URL.Query().Get("window"))
	if !ok {
		http.Error(w, "window: want 60s or 5s", http.StatusBadRequest)
		return
	}
	if !h.opt.Gate.enter() {
		w.Header().Set("Retry-After", "30")
		http.Error(w, "too many streams are open: poll /api/v1/hotkeys instead", http.StatusServiceUnavailable)
		return
	}
	defer h.opt.Gate.leave()
	c := http.NewResponseController(w)
	// The server's time limits are for answers that end. Reading goes on in
	// the background to notice that the reader left.
	c.SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // tells proxies to pass frames on at once
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var sent *frame
	for {
		f, err := h.frame(win)
		if err != nil {
			return
		}
		if f != sent {
			begin := time.Now()
			if !send(c, w, f) {
				if time.Since(begin) >= writeTimeout { // else the reader left
					h.opt.Gate.dropped.Add(1)
				}
				return
			}
			sent = f
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// send writes a frame; false means that the reader is too slow or has left.
func send(c *http.ResponseController, w http.ResponseWriter, f *frame) bool {
	// A writer that knows no deadlines is one of a test.
	c.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := w.Write(f.event); err != nil {
		return false
	}
	return c.Flush() == nil
}
