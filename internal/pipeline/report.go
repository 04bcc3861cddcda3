package pipeline

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/hotsniff/hotsniff/actions"
	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/internal/report"
	"github.com/hotsniff/hotsniff/resp"
	"github.com/hotsniff/hotsniff/topk"
)

// Report turns the snapshot into a report of its slow window with the top keys
// over all ports; top 0 keeps every key of the snapshot.
func (s *Snapshot) Report(node string, top int) *report.Report {
	return s.report(node, top, func(p *PortSnapshot) *topk.Snapshot { return p.Slow })
}

// FastReport is Report over the fast window of 5 s.
func (s *Snapshot) FastReport(node string, top int) *report.Report {
	return s.report(node, top, func(p *PortSnapshot) *topk.Snapshot { return cmp.Or(p.Fast, p.Slow) })
}

func (s *Snapshot) report(node string, top int, view func(*PortSnapshot) *topk.Snapshot) *report.Report {
	r := &report.Report{
		Schema: report.Schema, Node: node, Sources: []string{}, From: clockTime(s.Started), To: clockTime(s.T), SampleEvery: max(s.Sampling.Every, 1),
		Keys: []report.Key{}, Commands: map[string]uint64{}, Capture: s.captureReport(),
	}
	for _, in := range s.Capture.Interfaces {
		r.Sources = append(r.Sources, in.Name)
	}
	for i := range s.Ports {
		s.addPort(r, &s.Ports[i], view(&s.Ports[i]))
	}
	if s.Whole || r.WindowSeconds == 0 {
		r.WindowSeconds = r.To.Sub(r.From).Seconds()
	}
	r.Keys = topKeys(r.Keys, top)
	return r
}

// topKeys sorts keys by accesses, then key, and keeps top of them: those of
// the hot list before all others, since a cooling key is news as well.
func topKeys(keys []report.Key, top int) []report.Key {
	order := func(a, b report.Key) int {
		return cmp.Or(cmp.Compare(b.Accesses, a.Accesses), strings.Compare(a.Key, b.Key), cmp.Compare(a.Port, b.Port))
	}
	slices.SortFunc(keys, order)
	if top <= 0 || len(keys) <= top {
		return keys
	}
	slices.SortStableFunc(keys, func(a, b report.Key) int { return listedFirst(a.Since != nil, b.Since != nil) })
	keys = keys[:top]
	slices.SortFunc(keys, order)
	return keys
}

func listedFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// addPort adds one port's window to r.
func (s *Snapshot) addPort(r *report.Report, p *PortSnapshot, t *topk.Snapshot) {
	for id, n := range p.Window {
		if n > 0 {
			r.Commands[s.commandNames[id]] += n
			r.Requests += n
		}
	}
	r.WindowSeconds = max(r.WindowSeconds, float64(t.WindowSeconds))
	r.Accesses += t.Accesses
	r.SampledAccesses += t.SampledAccesses
	r.DistinctKeys += t.Distinct
	r.SampleEvery = max(r.SampleEvery, t.SampleEvery*t.EventEvery)
	if from := clockTime(t.From); !s.Whole && from.After(r.From) {
		r.From = from
	}
	clients := p.leastClients()
	for i := range t.Keys {
		r.Keys = append(r.Keys, s.reportKey(p.Port, &t.Keys[i], clients))
	}
}

func (s *Snapshot) reportKey(port uint16, k *topk.KeyStat, clients int64) report.Key {
	out := report.Key{
		Port: port, State: k.State.String(), Share: k.Share, ShareLow: k.ShareLow, ShareHigh: k.ShareHigh,
		Accesses: k.Accesses, AccessesError: k.AccessesError, AccessesPerSecond: k.Rate,
		Reads: k.Reads, Writes: k.Writes, RequestBytes: k.RequestBytes, ReplyBytes: k.ReplyBytes, ReplyEstimated: k.ReplyBytesEstimated,
		Clients: uint64(k.Clients), Commands: map[string]uint64{}, Rule: k.Rule, Action: k.Action,
		History: k.History,
	}
	if e, listed := s.listEntry(actions.AdviceConfig{}, port, k, clients); listed {
		out.Action = e.Action.String()
	}
	out.Key, out.KeyBase64 = report.EscapeKey(k.Key)
	if k.Truncated {
		out.KeyBytes = k.KeyLen
	}
	if k.Since != 0 {
		since := clockTime(k.Since)
		out.Since = &since
	}
	if k.TopClientShare > 0 {
		out.TopClient = &report.TopClient{Address: netip.AddrFrom16(k.TopClient).Unmap().String(), Share: k.TopClientShare}
	}
	for _, c := range k.Commands {
		out.Commands[s.CommandName(c.Command)] += c.Count
	}
	if k.OtherCommands > 0 {
		out.Commands[s.commandNames[resp.CommandUnknown]] += k.OtherCommands
	}
	return out
}

// captureReport sums up what was captured and what was missed.
func (s *Snapshot) captureReport() report.Capture {
	c := report.Capture{
		Connections: s.Assembler.Opened, EncryptedConnections: s.Decoder.Encrypted,
		Gaps: s.Assembler.Gaps, DecodeErrors: map[string]uint64{},
	}
	for _, in := range s.Capture.Interfaces {
		c.Packets += in.Packets
		c.Bytes += in.Bytes
		c.Dropped += in.Dropped + in.InterfaceDropped
	}
	for reason, n := range s.DecodeErrors() {
		if n > 0 {
			c.DecodeErrors[reason] = n
		}
	}
	return c
}

// DecodeErrors returns everything that could not be decoded, by reason:
// packets, the bytes of connections, and what was given up at a limit.
func (s *Snapshot) DecodeErrors() map[string]uint64 {
	out := map[string]uint64{}
	for v, n := range s.Verdicts {
		if v := capture.Verdict(v); v != capture.Decoded && v != capture.NotTCP && v != capture.NotIP {
			out["packet_"+v.String()] = n
		}
	}
	for r, n := range s.Decoder.Errors {
		if r := resp.Reason(r); r != resp.ReasonNone {
			out[r.String()] = n
		}
	}
	d := &s.Decoder
	out["request_in_gap"] = d.Damaged
	out["requests_unproven"] = d.HeldDropped
	out["limit_unfinished_requests"] = d.PartialsEvicted
	out["limit_unproven_connections"] = d.HoldsEvicted
	out["limit_keys"] = d.KeysDropped
	out["limit_ports"] = s.PortsRefused
	out["segment_oversized"] = s.Assembler.Oversized
	return out
}

// OtherProtocols returns the connections and headers on the watched ports that
// are no requests, by protocol.
func (s *Snapshot) OtherProtocols() map[string]uint64 {
	d := &s.Decoder
	return map[string]uint64{"tls": d.Encrypted, "http": d.HTTP, "replication": d.Replication, "proxy_header": d.ProxyHeaders}
}

// FlowsEvicted returns the connections that were forgotten while they may
// still have been open, by reason.
func (s *Snapshot) FlowsEvicted() map[string]uint64 {
	out := map[string]uint64{}
	for _, reason := range []capture.EndReason{capture.EndIdle, capture.EndEvicted} {
		out[reason.String()] = s.Assembler.Ended[reason]
	}
	return out
}

// clockTime turns packet time into a time; 0 is the zero time.
func clockTime(t int64) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.Unix(0, t).UTC()
}

// Report returns the event as it is reported.
func (ev *Event) Report(node string) *report.Event {
	line := report.Event{
		Schema: report.EventSchema, At: clockTime(ev.T), Event: ev.Kind.String(), Port: ev.Port,
		Share: ev.Share, ShareLow: ev.ShareLow, ShareHigh: &ev.ShareHigh,
		AccessesPerSecond: ev.Rate, WindowSeconds: ev.WindowSeconds, Node: node,
	}
	line.Key, line.KeyBase64 = report.EscapeKey(ev.Key)
	return &line
}
