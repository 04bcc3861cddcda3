package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// goal is a bound of the median. The zero value is none.
type goal struct {
	op    string // "<=" or ">="
	value float64
}

func atMost(v float64) goal  { return goal{"<=", v} }
func atLeast(v float64) goal { return goal{">=", v} }

// met reports whether v keeps the goal.
func (g goal) met(v float64) bool {
	if g.op == "<=" {
		return v <= g.value
	}
	return v >= g.value
}

// line is one row of the table.
type line struct {
	what   string
	unit   string    // "x", "%", "ns", "MiB", "s": what stands behind the numbers
	values []float64 // one a round
	goal   goal
	// control is the same thing measured against itself in the same
	// interleaving, one a round: a ratio around 1, or, with differs, a
	// difference around 0 in the unit of the values. Without one the value
	// does not depend on the machine (counts, sizes), or there is no goal.
	control []float64
	differs bool
}

type verdict string

const (
	passed verdict = "pass"
	failed verdict = "FAIL"
	void   verdict = "void" // the control is noisier than the margin
	noGoal verdict = ""     // stands there to compare with
)

// noise is how far the median of the control may truly be away from where it
// should be.
func (l *line) noise() float64 {
	if len(l.control) == 0 {
		return 0
	}
	centre := 1.0
	if l.differs {
		centre = 0
	}
	lo, hi := medianRange(l.control)
	return max(math.Abs(lo-centre), math.Abs(hi-centre))
}

// margin is how far the median is away from the goal, in the terms of noise.
func (l *line) margin() float64 {
	off := math.Abs(median(l.values) - l.goal.value)
	if !l.differs && l.goal.value != 0 {
		off /= math.Abs(l.goal.value)
	}
	return off
}

// verdict judges the median: nothing is passed, and nothing is failed, that the
// same thing beside itself could have shown.
func (l *line) verdict() verdict {
	m := median(l.values)
	switch {
	case l.goal.op == "":
		return noGoal
	case math.IsNaN(m):
		return failed
	case l.noise() > l.margin():
		return void
	case l.goal.met(m):
		return passed
	}
	return failed
}

// figure prints v with about three digits.
func figure(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "?"
	case a >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 0.095:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// spread prints the median and the range.
func spread(v []float64) string {
	if len(v) == 0 {
		return "-"
	}
	if len(v) == 1 {
		return figure(v[0])
	}
	return fmt.Sprintf("%s [%s .. %s]", figure(median(v)), figure(slices.Min(v)), figure(slices.Max(v)))
}

// cells are what stands in the columns.
func (l *line) cells() []string {
	unit := l.unit
	if unit != "" && unit != "x" {
		unit = " " + unit
	}
	want := "-"
	if l.goal.op != "" {
		want = l.goal.op + " " + figure(l.goal.value) + unit
	}
	control := spread(l.control)
	if len(l.control) > 0 && l.differs {
		control += unit
	}
	v := string(l.verdict())
	if v == "" {
		v = "-"
	}
	return []string{l.what, spread(l.values) + unit, want, control, v}
}

var columns = []string{"what", "measured: median [least .. most]", "goal", "A/A control", "verdict"}

// table is what the benchmark says in the end.
type table struct {
	lines   []line
	notes   []string
	skipped []string // what was not measured, and why
}

func (t *table) add(l ...line) { t.lines = append(t.lines, l...) }
func (t *table) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}
func (t *table) skip(what, why string) { t.skipped = append(t.skipped, what+": "+why) }

// count returns how many lines have the verdict.
func (t *table) count(v verdict) int {
	n := 0
	for i := range t.lines {
		if t.lines[i].verdict() == v {
			n++
		}
	}
	return n
}

// write prints the table as text or, for a README, as Markdown.
func (t *table) write(w io.Writer, markdown bool) {
	if markdown {
		fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)))
		for i := range t.lines {
			cells := t.lines[i].cells()
			for j := range cells {
				cells[j] = strings.ReplaceAll(cells[j], "|", `\|`)
			}
			fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
		}
	} else {
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(tw, strings.Join(columns, "\t"))
		for i := range t.lines {
			fmt.Fprintln(tw, strings.Join(t.lines[i].cells(), "\t"))
		}
		tw.Flush()
	}
	fmt.Fprintln(w)
	for _, n := range t.notes {
		fmt.Fprintln(w, n)
	}
	for _, s := range t.skipped {
		fmt.Fprintln(w, "skipped:", s)
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d void (the machine was too noisy to tell: the control is further off than the value from its goal)\n",
		t.count(passed), t.count(failed), t.count(void))
}
