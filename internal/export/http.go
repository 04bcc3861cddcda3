package export

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"net/url"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"

	"github.com/hotsniff/hotsniff/actions"
	"github.com/hotsniff/hotsniff/internal/page"
	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/internal/report"
)

// Options are what the HTTP surface is made of. Latest and Monitor are needed.
type Options struct {
	Latest  func() *pipeline.Snapshot // nil before the first snapshot
	Monitor *Monitor                  // over the same snapshots
	Node    string                    // names this node in reports
	Top     int                       // keys of a port that get series; the most of keys in a report
	Version string
	Config  map[string]string      // what /api/v1/status shows of the configuration; no secrets
	Extra   []prometheus.Collector // further metrics, of the publisher for example
	Publish func() actions.Stats   // of the publisher; nil: nothing is published
	Pprof   bool                   // serve /debug/pprof/, whose dumps hold key names
	Reload  func() (string, error) // answers POST /-/reload; nil: there is no such path
	Gate    *page.Gate             // of the page's streams; nil: one of its own
	Log     *slog.Logger           // where a failed scrape is told; nil: nowhere

	page *page.Page // set by NewHandler
}

// registry returns the metrics that are not made from a snapshot.
func registry(o Options) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(
		o.Monitor,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		versioncollector.NewCollector("hotsniff"),
	)
	reg.MustRegister(o.Extra...)
	return reg
}

// NewHandler returns the HTTP surface.
func NewHandler(o Options) http.Handler {
	o.page = page.New(page.Options{Latest: o.Latest, Status: o.pageStatus, Node: o.Node, Top: o.Top, Gate: o.Gate})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", newScrapes(o))
	mux.Handle("GET /api/v1/hotkeys", &hotkeys{o.Latest, o.Node, o.Top})
	mux.HandleFunc("GET /api/v1/status", o.serveStatus)
	mux.HandleFunc("GET /-/healthy", o.serveHealthy)
	mux.HandleFunc("GET /-/ready", o.serveReady)
	o.page.Register(mux)
	if o.Reload != nil {
		// A page of another site must not make a visitor's browser do it.
		mux.Handle("POST /-/reload", http.NewCrossOriginProtection().Handler(http.HandlerFunc(o.serveReload)))
	}
	if o.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return secured(mux)
}

// serveReload reads the configuration again: 200, or 500 with the reason.
func (o *Options) serveReload(w http.ResponseWriter, _ *http.Request) {
	done, err := o.Reload()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, done)
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
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		// Half of it would be an answer to another question.
		http.Error(w, "the query cannot be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	top := h.top
	if text := query.Get("top"); text != "" {
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
	if text := query.Get("port"); text != "" {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			http.Error(w, "port: want 1 to 65535", http.StatusBadRequest)
			return
		}
		s = onePort(s, uint16(port))
	}
	var rep *report.Report
	switch query.Get("window") {
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

// onePort is s with one of its ports only. Snapshots never change, so they may
// share what they hold.
func onePort(s *pipeline.Snapshot, port uint16) *pipeline.Snapshot {
	one := *s
	one.Ports = nil
	for i := range s.Ports {
		if s.Ports[i].Port == port {
			one.Ports = s.Ports[i : i+1]
		}
	}
	return &one
}
