// Package report is the report hotsniff.report/v1: what `hotsniff read` prints
// and GET /api/v1/hotkeys answers, as JSON, as CSV and as a table.
//
// A Report is plain data, made once and not changed. Key names come from the
// wire and may be anything: in JSON they are valid UTF-8 (EscapeKey), and in
// the table nothing in them can reach the terminal as a control (PrintableKey).
package report
