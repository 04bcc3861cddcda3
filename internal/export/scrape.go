package export

import (
	"bytes"
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/hotsniff/hotsniff/internal/pipeline"
)

// maxScrapes bounds concurrent scrapes: each holds a few hundred kilobytes.
const maxScrapes = 8

// bytesPerSeries is room for most series as text.
const bytesPerSeries = 96

// formats are what Prometheus asks for; protobuf would only be of use for
// native histograms, of which there are none.
var formats = []expfmt.Format{expfmt.FmtOpenMetrics_1_0_0, expfmt.FmtOpenMetrics_0_0_1, expfmt.FmtText}

// scrapes answers GET /metrics. What comes from the snapshot is encoded once
// and shared by all scrapes of the same tick and format; the few metrics of
// the process beside it are gathered anew each time. The capture loop is never
// waited for and never waits: a snapshot is one atomic load.
type scrapes struct {
	latest func() *pipeline.Snapshot
	top    int
	rest   prometheus.Gatherer
	log    *slog.Logger  // may be nil
	slots  chan struct{} // one for each scrape under way

	mu    sync.Mutex // held while a snapshot is encoded; the next scrape wants the same
	cache *encoded
}

// encoded is the families of one snapshot in one format. It never changes.
type encoded struct {
	snapshot *pipeline.Snapshot
	format   expfmt.Format
	parts    []part // by name
}

// part is one family as it goes over the wire.
type part struct {
	name string
	text []byte
}

func newScrapes(o Options) *scrapes {
	return &scrapes{latest: o.Latest, top: o.Top, rest: registry(o), log: o.Log, slots: make(chan struct{}, maxScrapes)}
}

// ServeHTTP implements http.Handler. As everywhere with Prometheus, name[] in
// the query chooses metrics, Accept the format and Accept-Encoding gzip.
func (h *scrapes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	default:
		http.Error(w, "more than "+strconv.Itoa(maxScrapes)+" scrapes at once", http.StatusServiceUnavailable)
		return
	}
	format := expfmt.NegotiateAccept(r.Header, formats...)
	rest, err := h.rest.Gather()
	h.warn(err) // what cannot be gathered must not take the rest along
	parts, end := h.encode(rest, format)
	parts = append(parts, h.encoded(format)...)
	slices.SortStableFunc(parts, func(a, b part) int { return strings.Compare(a.name, b.name) })
	if names := r.URL.Query()["name[]"]; len(names) > 0 {
		parts = slices.DeleteFunc(parts, func(p part) bool { return !slices.Contains(names, p.name) })
	}
	write(w, r, format, append(parts, part{text: end}))
}

// encoded returns the families of the newest snapshot. Nobody changes them.
func (h *scrapes) encoded(format expfmt.Format) []part {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.latest()
	if h.cache == nil || h.cache.snapshot != s || h.cache.format != format {
		h.cache = &encoded{s, format, encodeText(collect(s, h.top), format.FormatType())}
	}
	return h.cache.parts
}

// encodeText writes families one by one.
func encodeText(all []*family, format expfmt.FormatType) []part {
	n := 0
	for _, f := range all {
		n += bytesPerSeries * (2 + len(f.series))
	}
	buf := make([]byte, 0, n)
	parts := make([]part, len(all))
	for i, f := range all {
		begin := len(buf)
		buf = f.append(buf, format)
		parts[i] = part{f.name, buf[begin:]}
	}
	return parts
}

// encode does the same with what a registry gave, and returns what ends an
// answer.
func (h *scrapes) encode(families []*dto.MetricFamily, format expfmt.Format) (parts []part, end []byte) {
	var buf bytes.Buffer
	enc := expfmt.NewEncoder(&buf, format)
	marks := make([]int, 1, len(families)+1)
	for _, f := range families {
		h.warn(enc.Encode(f))
		marks = append(marks, buf.Len())
	}
	if c, ok := enc.(expfmt.Closer); ok {
		h.warn(c.Close())
	}
	all := buf.Bytes()
	for i, f := range families {
		parts = append(parts, part{f.GetName(), all[marks[i]:marks[i+1]]})
	}
	return parts, all[marks[len(families)]:]
}

func (h *scrapes) warn(err error) {
	if err != nil && h.log != nil {
		h.log.Warn("a scrape is not complete", "error", err)
	}
}

// write sends an answer. Errors mean that the client went away.
func write(w http.ResponseWriter, r *http.Request, format expfmt.Format, parts []part) {
	w.Header().Set("Content-Type", string(format))
	w.Header().Set("Vary", "Accept, Accept-Encoding")
	var out io.Writer = w
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		w.Header().Set("Content-Encoding", "gzip")
		zip := zips.Get().(*gzip.Writer)
		defer zips.Put(zip)
		zip.Reset(w)
		defer zip.Close()
		out = zip
	} else {
		n := 0
		for _, p := range parts {
			n += len(p.text)
		}
		w.Header().Set("Content-Length", strconv.Itoa(n))
	}
	for _, p := range parts {
		if _, err := out.Write(p.text); err != nil {
			return
		}
	}
}

// zips are writers at the least level: beside Redis, CPU is dearer than bytes.
var zips = sync.Pool{New: func() any {
	zip, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is a valid one
	return zip
}}

// acceptsGzip reports whether gzip is in an Accept-Encoding header and not
// refused there.
func acceptsGzip(header string) bool {
	for offer := range strings.SplitSeq(header, ",") {
		coding, params, _ := strings.Cut(offer, ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			q, given := strings.CutPrefix(strings.TrimSpace(params), "q=")
			weight, err := strconv.ParseFloat(q, 64)
			return !given || err == nil && weight > 0
		}
	}
	return false
}
