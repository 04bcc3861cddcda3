package export

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotsniff/hotsniff/internal/pipeline"
)

// collector turns the newest snapshot into metrics.
type collector struct {
	latest func() *pipeline.Snapshot
	top    int // keys of a port that get series
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range snapshotMetrics() {
		ch <- d.Desc
	}
}

// Collect implements prometheus.Collector. Any goroutine.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.latest()
	if s == nil {
		return // nothing was captured yet: no figures are better than zeros
	}
	e := emitter{ch, c.top}
	e.capture(s)
	var rows []row
	for i := range s.Ports {
		rows = e.port(rows, s, &s.Ports[i])
	}
	e.keys(rows)
}

// capture sends what is counted once for the whole process.
func (e emitter) capture(s *pipeline.Snapshot) {
	for _, in := range s.Capture.Interfaces {
		e.send(capturePackets, float64(in.Packets), in.Name)
		e.send(captureBytes, float64(in.Bytes), in.Name)
		e.send(captureDropped, float64(in.Dropped), in.Name, "kernel")
		e.send(captureDropped, float64(in.InterfaceDropped), in.Name, "interface")
	}
	e.send(flows, float64(s.Assembler.Flows))
	for reason, n := range s.FlowsEvicted() {
		e.send(flowsEvicted, float64(n), reason)
	}
	e.send(gaps, float64(s.Assembler.Gaps))
	e.send(resyncs, float64(s.Decoder.Resyncs))
	e.send(resyncsRefused, float64(s.Decoder.ResyncsRefused))
	e.send(cutSegments, float64(s.Assembler.Cuts))
	e.send(skippedBytes, float64(s.Decoder.SkippedBytes))
	for protocol, n := range s.OtherProtocols() {
		e.send(otherProtocols, float64(n), protocol)
	}
	e.send(panics, float64(s.Panics))
	e.send(clockSteps, float64(s.ClockSteps))
	e.send(encrypted, float64(s.Decoder.Encrypted))
	for reason, n := range s.DecodeErrors() {
		e.send(decodeErrors, float64(n), reason)
	}
	e.send(cpuRatio, s.Sampling.CPURatio)
	kernel, event := sampling(s)
	e.send(sampleEvery, float64(kernel), "kernel")
	e.send(sampleEvery, float64(event), "event")
}

// sampling is the sparsest sampling in force on any port, of packets in the
// kernel and of accesses.
func sampling(s *pipeline.Snapshot) (kernel, event int) {
	kernel, event = max(s.Sampling.Every, 1), 1
	for i := range s.Ports {
		kernel, event = max(kernel, s.Ports[i].Slow.SampleEvery), max(event, s.Ports[i].Slow.EventEvery)
	}
	return kernel, event
}

// port sends the figures of one server port and adds its keys to rows.
func (e emitter) port(rows []row, s *pipeline.Snapshot, p *pipeline.PortSnapshot) []row {
	port, t := strconv.Itoa(int(p.Port)), p.Slow
	e.send(requests, float64(p.Requests), port)
	e.send(accesses, float64(p.Accesses), port)
	for id, n := range p.Commands {
		if n > 0 {
			e.send(commands, float64(n), port, s.CommandName(uint16(id)))
		}
	}
	e.send(hotKeys, float64(t.Hot), port)
	e.send(distinctKeys, float64(t.Distinct), port)
	e.send(listChanges, float64(t.Counters.BecameHot), port, "hot")
	e.send(listChanges, float64(t.Counters.BecameCooling), port, "cooling")
	e.send(listChanges, float64(t.Counters.BecameGone), port, "gone")
	e.send(listOverflow, float64(t.Counters.Overflow), port)
	for _, g := range t.Groups {
		e.send(groupShare, g.Share, port, g.Name)
	}
	return e.addRows(rows, port, t)
}
