package doctor

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/hotsniff/hotsniff/internal/report"
)

// Schema names the JSON form of a Report.
const Schema = "hotsniff.doctor/v1"

// Status says how a check ended.
type Status uint8

// The states of a check. A Warning works, but not as somebody may expect; a
// Failure keeps hotsniff from its work.
const (
	OK Status = iota
	Warning
	Failure
)

var statusNames = [...]string{"ok", "warn", "fail"}

// String returns the word that begins a line.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "invalid"
}

// MarshalText implements encoding.TextMarshaler.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is what one check found.
type Finding struct {
	Status Status `json:"status"`
	Name   string `json:"name"`
	Found  string `json:"found"`
	Fix    string `json:"fix,omitempty"` // what to do; empty when nothing is to be done
}

func ok(name, format string, args ...any) Finding {
	return Finding{Status: OK, Name: name, Found: fmt.Sprintf(format, args...)}
}

func warn(name, fix, format string, args ...any) Finding {
	return Finding{Status: Warning, Name: name, Found: fmt.Sprintf(format, args...), Fix: fix}
}

func fail(name, fix, format string, args ...any) Finding {
	return Finding{Status: Failure, Name: name, Found: fmt.Sprintf(format, args...), Fix: fix}
}

// Report is the findings in the order of the checks. The zero value is empty.
type Report struct {
	Schema string    `json:"schema"`
	Failed bool      `json:"failed"`
	Checks []Finding `json:"checks"`
}

// Add appends findings.
func (r *Report) Add(all ...Finding) {
	r.Schema = Schema
	for _, f := range all {
		f.Found = report.PrintableKey(f.Found, 0)
		if f.Fix != "" { // an empty key would be shown
			f.Fix = report.PrintableKey(f.Fix, 0)
		}
		r.Failed = r.Failed || f.Status == Failure
		r.Checks = append(r.Checks, f)
	}
}

// Err is nil when no check failed.
func (r *Report) Err() error {
	n := 0
	for _, f := range r.Checks {
		if f.Status == Failure {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("doctor: %d of %d checks failed", n, len(r.Checks))
}

// nameWidth is that of the longest name of a check.
const nameWidth = 14

// String is the line of a finding, without a line feed.
func (f Finding) String() string {
	line := fmt.Sprintf("%-4s  %-*s  %s", f.Status, nameWidth, f.Name, f.Found)
	if f.Fix != "" {
		line += "; fix: " + f.Fix
	}
	return line
}

// WriteText writes one line a finding.
func (r *Report) WriteText(w io.Writer) error {
	for _, f := range r.Checks {
		if _, err := fmt.Fprintln(w, f); err != nil {
			return err
		}
	}
	return nil
}

// WriteJSON writes the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
