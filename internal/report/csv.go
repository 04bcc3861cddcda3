package report

import (
	"encoding/csv"
	"io"
	"time"
)

// WriteCSV writes the keys as CSV with a header line.
func (r *Report) WriteCSV(w io.Writer) error {
	return newCSV(w, false).Write(r)
}

// CSVWriter writes report after report as CSV: one header line, then a row for
// each key of each report, which begins with the end of the report's window.
type CSVWriter struct {
	csv     *csv.Writer
	columns []Column
	timed   bool
	begun   bool
	row     []string
}

// NewCSVWriter returns a CSVWriter to w. One goroutine uses it.
func NewCSVWriter(w io.Writer) *CSVWriter { return newCSV(w, true) }

func newCSV(w io.Writer, timed bool) *CSVWriter {
	return &CSVWriter{csv: csv.NewWriter(w), columns: Columns(), timed: timed}
}

// Write adds the rows of a report. The first call writes the header as well.
func (c *CSVWriter) Write(r *Report) error {
	if !c.begun {
		c.begun = true
		c.begin("time")
		for i := range c.columns {
			c.row = append(c.row, c.columns[i].Name)
		}
		c.csv.Write(c.row) // Error tells
	}
	for i := range r.Keys {
		c.begin(r.To.UTC().Format(time.RFC3339Nano))
		for j := range c.columns {
			c.row = append(c.row, c.columns[j].Value(&r.Keys[i]))
		}
		c.csv.Write(c.row)
	}
	c.csv.Flush()
	return c.csv.Error()
}

// begin begins a row, with a first field where rows have a time.
func (c *CSVWriter) begin(first string) {
	c.row = c.row[:0]
	if c.timed {
		c.row = append(c.row, first)
	}
}
