package export

import (
	"strconv"

	"github.com/hotsniff/hotsniff/internal/pipeline"
)

// capture adds what is counted once for the whole process.
func (b *families) capture(s *pipeline.Snapshot) {
	for _, in := range s.Capture.Interfaces {
		b.send(capturePackets, float64(in.Packets), in.Name)
		b.send(captureBytes, float64(in.Bytes), in.Name)
		b.send(captureDropped, float64(in.Dropped), in.Name, "kernel")
		b.send(captureDropped, float64(in.InterfaceDropped), in.Name, "interface")
	}
	b.send(flows, float64(s.Assembler.Flows))
	for reason, n := range s.FlowsEvicted() {
		b.send(flowsEvicted, float64(n), reason)
	}
	b.send(gaps, float64(s.Assembler.Gaps))
	b.send(resyncs, float64(s.Decoder.Resyncs))
	b.send(resyncsRefused, float64(s.Decoder.ResyncsRefused))
	b.send(cutSegments, float64(s.Assembler.Cuts))
	b.send(skippedBytes, float64(s.Decoder.SkippedBytes))
	for protocol, n := range s.OtherProtocols() {
		b.send(otherProtocols, float64(n), protocol)
	}
	b.send(panics, float64(s.Panics))
	b.send(clockSteps, float64(s.ClockSteps))
	b.send(encrypted, float64(s.Decoder.Encrypted))
	for reason, n := range s.DecodeErrors() {
		b.send(decodeErrors, float64(n), reason)
	}
	b.send(cpuRatio, s.Sampling.CPURatio)
	kernel, event := sampling(s)
	b.send(sampleEvery, float64(kernel), "kernel")
	b.send(sampleEvery, float64(event), "event")
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

// port adds the figures of one server port and adds its keys to rows.
func (b *families) port(rows []row, s *pipeline.Snapshot, p *pipeline.PortSnapshot) []row {
	port, t := strconv.Itoa(int(p.Port)), p.Slow
	b.send(requests, float64(p.Requests), port)
	b.send(accesses, float64(p.Accesses), port)
	for id, n := range p.Commands {
		if n > 0 {
			b.send(commands, float64(n), port, s.CommandName(uint16(id)))
		}
	}
	b.send(hotKeys, float64(t.Hot), port)
	b.send(distinctKeys, float64(t.Distinct), port)
	b.send(listChanges, float64(t.Counters.BecameHot), port, "hot")
	b.send(listChanges, float64(t.Counters.BecameCooling), port, "cooling")
	b.send(listChanges, float64(t.Counters.BecameGone), port, "gone")
	b.send(listOverflow, float64(t.Counters.Overflow), port)
	for _, g := range t.Groups {
		b.send(groupShare, g.Share, port, g.Name)
	}
	return b.addRows(rows, port, t)
}
