package page

import (
	stdbytes "bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"hash/maphash"
	"html/template"
	"io/fs"
	"net/http"
	"strings"

	"github.com/hotsniff/hotsniff/internal/pipeline"
)

//go:embed assets
var assets embed.FS

var (
	document = template.Must(template.ParseFS(assets, "assets/page.html"))
	styles   = asset("assets/page.css")
	script   = joinScript()
)

// policy allows the document its own style sheet, script and streams, and
// nothing else; scripts may not turn text into markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

func asset(name string) string {
	text, err := assets.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

// joinScript makes one script of assets/js, in the order of the names.
func joinScript() string {
	names, err := fs.Glob(assets, "assets/js/*.js")
	if err != nil {
		panic(err)
	}
	var b strings.Builder
	b.WriteString("(() => {\n'use strict';\n")
	for _, name := range names {
		b.WriteString(asset(name))
	}
	b.WriteString("})();\n")
	return b.String()
}

// Options say what the page shows. All functions may be called by any
// goroutine.
type Options struct {
	Latest func() *pipeline.Snapshot // nil before the first one
	Status func() Status
	Node   string // names this node
	Top    int    // the most of keys
	Gate   *Gate  // nil: one of its own
}

// Page serves the page and its streams.
type Page struct{ hub hub }

// New returns a Page.
func New(o Options) *Page {
	if o.Gate == nil {
		o.Gate = &Gate{}
	}
	return &Page{hub{opt: o, seed: maphash.MakeSeed()}}
}

// Register adds the page at / with what it is made of, and its stream at
// /api/v1/events.
func (p *Page) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", p.serve)
	mux.HandleFunc("GET /page.css", serveText("text/css; charset=utf-8", styles))
	mux.HandleFunc("GET /page.js", serveText("text/javascript; charset=utf-8", script))
	mux.HandleFunc("GET /api/v1/events", p.hub.serveEvents)
}

// Streams says how the streams are doing.
func (p *Page) Streams() Streams { return p.hub.opt.Gate.stats() }

func serveText(kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		fmt.Fprint(w, text) // an error means that the client went away
	}
}

// serve answers GET /.
func (p *Page) serve(w http.ResponseWriter, r *http.Request) {
	win, ok := parseWindow(r.URL.Query().Get("window"))
	if !ok {
		http.Error(w, "window: want 60s or 5s", http.StatusBadRequest)
		return
	}
	f, err := p.hub.frame(win)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	v := newView(f.report, &f.status)
	v.Fast, v.Version = win == fast, f.status.Version
	var out stdbytes.Buffer // so that a mistake in the template is no half page
	if err := document.Execute(&out, v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", policy)
	w.Write(out.Bytes())
}

// inline is what a file carries inside that a served page fetches.
type inline struct {
	Policy string
	CSS    template.CSS
	JS     template.JS
	Data   template.JS // JSON that is escaped for a script element
}

// source returns a text as the source of a policy that allows it alone.
func source(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
