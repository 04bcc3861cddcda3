package export

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/internal/report"
)

// maxScrapes bounds concurrent scrapes: each holds a few hundred kilobytes.
const maxScrapes = 8

// Registry returns a registry with every metric of hotsniff, made from what
// latest returns (nil: nothing yet), for the top keys of each port, and extra.
func Registry(latest func() *pipeline.Snapshot, top int, extra ...prometheus.Collector) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(
		&collector{latest, top},
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		versioncollector.NewCollector("hotsniff"),
	)
	reg.MustRegister(extra...)
	return reg
}

// NewHandler returns the HTTP surface over latest. node names this node in
// reports, top is the default and the most of keys in one, extra are further
// metrics.
func NewHandler(latest func() *pipeline.Snapshot, node string, top int, extra ...prometheus.Collector) http.Handler {
	reg := Registry(latest, top, extra...)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		// A key that cannot be exported must not take the rest along.
		ErrorHandling:       promhttp.ContinueOnError,
		Registry:            reg,
		EnableOpenMetrics:   true,
		MaxRequestsInFlight: maxScrapes,
		Timeout:             10 * time.Second,
	}))
	mux.Handle("GET /api/v1/hotkeys", &hotkeys{latest, node, top})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, "hotsniff\n\n/metrics\n/api/v1/hotkeys?top=20&window=60s")
	})
	return secured(mux)
}

// secured adds the headers that keep browsers from making anything else of an
// answer: key names in it were chosen by whoever can reach Redis.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// hotkeys answers GET /api/v1/hotkeys with hotsniff.report/v1.
type hotkeys struct {
	latest func() *pipeline.Snapshot
	node   string
	top    int
}

// ServeHTTP implements http.Handler.
func (h *hotkeys) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	top := h.top
	if text := r.URL.Query().Get("top"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			http.Error(w, "top: want a number above 0", http.StatusBadRequest)
			return
		}
		top = min(n, h.top)
	}
	s := h.latest()
	if s == nil {
		s = &pipeline.Snapshot{} // nothing was captured yet: an empty report
	}
	var rep *report.Report
	switch r.URL.Query().Get("window") {
	case "", "60s":
		rep = s.Report(h.node, top)
	case "5s":
		rep = s.FastReport(h.node, top)
	default:
		http.Error(w, "window: want 60s or 5s", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	rep.WriteJSON(w) // an error means that the client went away
}
