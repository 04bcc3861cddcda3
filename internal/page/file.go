package page

import (
	"html/template"
	"io"

	"github.com/hotsniff/hotsniff/internal/report"
)

// maxFileKeys bounds the keys in a file: browsers open a table of so many rows
// without delay.
const maxFileKeys = 1000

// WriteFile writes a report as one HTML document that needs nothing else: the
// page with the style sheet, the script and the data inside. r is not changed.
func WriteFile(w io.Writer, r *report.Report, version string) error {
	cut := *r
	cut.Keys = r.Keys[:min(len(r.Keys), maxFileKeys)]
	text, err := encode(&cut, nil)
	if err != nil {
		return err
	}
	v := newView(&cut, nil)
	v.Version = version
	v.LeftOut = len(r.Keys) - len(cut.Keys)
	v.inline = inline{
		Policy: "default-src 'none'; script-src " + source(script) + "; style-src " + source(styles) +
			"; img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
		CSS: template.CSS(styles), JS: template.JS(script), Data: template.JS(text),
	}
	return document.Execute(w, v)
}
