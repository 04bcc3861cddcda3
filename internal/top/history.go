package top

import (
	"cmp"
	"slices"
	"time"

	"github.com/hotsniff/hotsniff/internal/report"
)

const (
	// historyTime is what the graphs of shares cover: the slow window.
	historyTime = time.Minute

	// maxPoints bounds the shares that are kept of a key: one each 250 ms, the
	// shortest interval.
	maxPoints = 240

	// maxSeries bounds the keys with a history: five screens of 200 rows, 4 MB.
	maxSeries = 1000
)

// keyID names a key: reports may have the same key at several ports, and the
// escaped text of two keys may be the same.
type keyID struct {
	port        uint16
	key, base64 string
}

func idOf(k *report.Key) keyID { return keyID{k.Port, k.Key, k.KeyBase64} }

// point is a share at a time.
type point struct {
	t     int64 // ns
	share float64
}

// history keeps the shares of keys over the last minute.
type history struct {
	series map[keyID]*series
	newest int64
}

// series is the history of one key, oldest first.
type series struct {
	points []point
	seen   int64 // when a report last had the key
}

// add takes over the shares of a report. One that is not newer than the last
// is left out: a capture that stands still makes no history.
func (h *history) add(r *report.Report) {
	t := r.To.UnixNano()
	if h.series == nil {
		h.series = map[keyID]*series{}
	}
	if t < h.newest-int64(historyTime) {
		clear(h.series) // another run of the daemon, or a clock that was set
	} else if t <= h.newest {
		return
	}
	h.newest = t
	for i := range r.Keys {
		id := idOf(&r.Keys[i])
		s := h.series[id]
		if s == nil {
			s = &series{}
			h.series[id] = s
		}
		s.seen = t
		s.add(point{t, r.Keys[i].Share})
	}
	for id, s := range h.series {
		if s.seen == t {
			continue
		}
		if t-s.seen > int64(historyTime) {
			delete(h.series, id)
		} else {
			s.add(point{t, 0}) // less than whoever is in the report
		}
	}
	h.bound()
}

// bound drops the keys that were seen longest ago beyond maxSeries.
func (h *history) bound() {
	if len(h.series) <= maxSeries {
		return
	}
	ids := make([]keyID, 0, len(h.series))
	for id := range h.series {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b keyID) int {
		return cmp.Or(cmp.Compare(h.series[a].seen, h.series[b].seen), cmp.Compare(a.key, b.key))
	})
	for _, id := range ids[:len(ids)-maxSeries] {
		delete(h.series, id)
	}
}

func (s *series) add(p point) {
	if len(s.points) == maxPoints {
		s.points = s.points[:copy(s.points, s.points[1:])]
	}
	s.points = append(s.points, p)
}

// buckets returns the shares of a key in the minute up to end in n equal parts,
// the largest of each; what was before the first one known is -1.
func (h *history) buckets(id keyID, end time.Time, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = -1
	}
	s := h.series[id]
	if s == nil || n == 0 {
		return out
	}
	begin := end.UnixNano() - int64(historyTime)
	for _, p := range s.points {
		i := (p.t - begin - 1) * int64(n) / int64(historyTime)
		if p.t > begin && i < int64(n) {
			out[i] = max(out[i], p.share)
		}
	}
	// Between two reports the share is the one of the report before.
	for i := 1; i < n; i++ {
		if out[i] < 0 {
			out[i] = out[i-1]
		}
	}
	return out
}
