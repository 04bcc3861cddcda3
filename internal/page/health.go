package page

import (
	"strconv"

	"github.com/hotsniff/hotsniff/internal/report"
)

const (
	okLevel   = "ok"
	noteLevel = "note" // worth knowing
	warnLevel = "warn" // the figures may mislead

	// fewOf is the part of packets or connections up to which a loss cannot
	// change which keys are hot.
	fewOf = 0.001

	// busyCPU is a part of one core that nobody expects hotsniff to need.
	busyCPU = 0.25
)

// Status is what the page shows beside a report; the names are those of
// hotsniff.status/v1.
type Status struct {
	Version  string   `json:"version"`
	Healthy  bool     `json:"healthy"`
	CPURatio float64  `json:"cpu_ratio"` // of one core
	Publish  *Publish `json:"publish"`   // null: nothing is published
}

// Publish says how publishing goes.
type Publish struct {
	Result    string `json:"result"`    // of the last attempt: ok, or what failed
	Failing   int    `json:"failing"`   // failures in a row
	Receivers int64  `json:"receivers"` // of the last list
}

// health says what the figures do not cover, and what hotsniff itself costs.
func health(r *report.Report, st *Status) []tile {
	c := &r.Capture
	packets := c.Packets + c.Dropped
	out := []tile{
		lost("Dropped packets", c.Dropped, packets),
		{"Sampling", sampling(r.SampleEvery), level(r.SampleEvery > 1, noteLevel)},
		lost("Gaps", c.Gaps, packets),
		{"Encrypted", part(c.EncryptedConnections, c.Connections, "connections"), level(c.EncryptedConnections > 0, warnLevel)},
		lost("Not decoded", sum(c.DecodeErrors), packets),
	}
	if st == nil {
		return out
	}
	return append(out,
		tile{"CPU", percent0(st.CPURatio) + " of a core", level(st.CPURatio >= busyCPU, warnLevel)},
		publishing(st.Publish),
		tile{"Capture", map[bool]string{true: "running", false: "stalled"}[st.Healthy], level(!st.Healthy, warnLevel)},
	)
}

func level(is bool, then string) string {
	if is {
		return then
	}
	return okLevel
}

// lost is a tile of n lost of all.
func lost(name string, n, all uint64) tile {
	if n == 0 {
		return tile{name, "none", okLevel}
	}
	ratio := float64(n) / float64(max(all, n))
	return tile{name, number(float64(n)) + " (" + percent0(ratio) + ")", level(ratio > fewOf, warnLevel)}
}

func part(n, all uint64, of string) string {
	if n == 0 {
		return "no " + of
	}
	return percent0(float64(n)/float64(max(all, n))) + " of " + of
}

func sampling(every int) string {
	if every > 1 {
		return "1 in " + strconv.Itoa(every)
	}
	return "off"
}

func publishing(p *Publish) tile {
	switch {
	case p == nil:
		return tile{"Publishing", "off", okLevel}
	case p.Failing > 0:
		return tile{"Publishing", p.Result + ", " + strconv.Itoa(p.Failing) + " in a row", warnLevel}
	case p.Receivers == 1:
		return tile{"Publishing", "to 1 subscriber", okLevel}
	}
	return tile{"Publishing", "to " + number(float64(p.Receivers)) + " subscribers", okLevel}
}

func sum(counts map[string]uint64) uint64 {
	all := uint64(0)
	for _, n := range counts {
		all += n
	}
	return all
}
