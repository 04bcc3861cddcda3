package export

import (
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/hotsniff/hotsniff/internal/pipeline"
)

// families are the metrics of one snapshot. They are written as text by
// themselves: a registry checks every series of every scrape against its
// description and makes a dozen objects of it, which at 200 keys a port costs
// seven times as much. A test holds the text to what a registry gives.
type families struct {
	top  int // keys of a port that get series
	list map[*desc]*family
}

// family is one metric with its series.
type family struct {
	*desc
	series []series
}

// series is one value. Its labels are three pieces of text, so that the
// series of one key can share the middle one.
type series struct {
	head, labels, tail string
	value              float64
}

// collect returns the families of s by name, none when nothing was captured
// yet: no figures are better than zeros.
func collect(s *pipeline.Snapshot, top int) []*family {
	if s == nil {
		return nil
	}
	b := &families{top: top, list: map[*desc]*family{}}
	b.capture(s)
	var rows []row
	for i := range s.Ports {
		rows = b.port(rows, s, &s.Ports[i])
	}
	b.keys(rows)
	out := make([]*family, 0, len(b.list))
	for _, f := range b.list {
		out = append(out, f)
	}
	slices.SortFunc(out, func(x, y *family) int { return strings.Compare(x.name, y.name) })
	return out
}

// send adds a series with the values of its labels in the order of d.
func (b *families) send(d *desc, value float64, values ...string) {
	f := b.family(d, len(values))
	s := series{labels: labelText(d.labels, values), value: value}
	i, found := slices.BinarySearchFunc(f.series, s.labels, func(x series, labels string) int { return strings.Compare(x.labels, labels) })
	if !found {
		f.series = slices.Insert(f.series, i, s)
	} else if d.kind == prometheus.CounterValue {
		// A series that comes twice would make the whole scrape invalid.
		f.series[i].value += value
	}
}

// family returns the family of d, with room for n more series.
func (b *families) family(d *desc, n int) *family {
	f := b.list[d]
	if f == nil {
		f = &family{desc: d}
		b.list[d] = f
	}
	f.series = slices.Grow(f.series, n)
	return f
}

// labelText writes labels sorted by name, without the braces. Names of devices
// are any bytes to the kernel; a label is valid UTF-8.
func labelText(names, values []string) string {
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = name + `="` + labelEscaper.Replace(strings.ToValidUTF8(values[i], "\uFFFD")) + `"`
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

var (
	labelEscaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	helpEscaper  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

// append writes the family in one of the text formats.
func (f *family) append(dst []byte, format expfmt.FormatType) []byte {
	open := format == expfmt.TypeOpenMetrics
	name, help := f.name, helpEscaper.Replace(f.help)
	if open {
		help = labelEscaper.Replace(f.help)
		if f.kind == prometheus.CounterValue {
			name = strings.TrimSuffix(name, "_total")
		}
	}
	dst = append(dst, "# HELP "+name+" "+help+"\n# TYPE "+name+" "+kindNames[f.kind]+"\n"...)
	for i := range f.series {
		s := &f.series[i]
		dst = append(dst, f.name...)
		if s.labels != "" {
			dst = append(append(append(append(append(dst, '{'), s.head...), s.labels...), s.tail...), '}')
		}
		dst = append(appendValue(append(dst, ' '), s.value, open), '\n')
	}
	return dst
}

// appendValue writes a number as Prometheus does; OpenMetrics wants to see that
// it is no integer.
func appendValue(dst []byte, v float64, open bool) []byte {
	begin := len(dst)
	dst = strconv.AppendFloat(dst, v, 'g', -1, 64)
	if open && !slices.ContainsFunc(dst[begin:], func(c byte) bool { return c == '.' || c == 'e' || c > '9' }) {
		dst = append(dst, ".0"...)
	}
	return dst
}
