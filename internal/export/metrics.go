package export

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/topk"
)

// desc is one metric. The list of all is descs, which Describe sends.
type desc struct {
	*prometheus.Desc
	kind prometheus.ValueType
}

var descs []*prometheus.Desc

func gauge(name, help string, labels ...string) desc {
	return register(prometheus.GaugeValue, name, help, labels)
}

func counter(name, help string, labels ...string) desc {
	return register(prometheus.CounterValue, name, help, labels)
}

func register(kind prometheus.ValueType, name, help string, labels []string) desc {
	d := prometheus.NewDesc("hotsniff_"+name, help, labels, nil)
	descs = append(descs, d)
	return desc{d, kind}
}

var (
	keyShare     = gauge("key_share_ratio", "Share of the key in all key accesses of the port in the last minute.", "port", "key")
	keyShareLow  = gauge("key_share_lower_ratio", "Lower bound of the key's share.", "port", "key")
	keyRate      = gauge("key_accesses_per_second", "Accesses of the key a second in the last minute, scaled by sampling.", "port", "key", "type")
	keyBytes     = gauge("key_bytes_per_second", "Bytes a second of requests for the key and of replies to them in the last minute, scaled by sampling.", "port", "key", "direction")
	keyClients   = gauge("key_clients", "Distinct client addresses that accessed the key in the last minute, estimated.", "port", "key")
	keyHot       = gauge("key_hot", "1 when the key is in the hot list, 0 when it is only among the top keys.", "port", "key")
	keySince     = gauge("key_hot_since_timestamp_seconds", "Since when the key is in the hot list.", "port", "key")
	groupShare   = gauge("group_share_ratio", "Share of all keys of a rule group in the last minute.", "port", "rule")
	otherShare   = gauge("other_share_ratio", "Share of all keys that have no series of their own.", "port")
	hotKeys      = gauge("hot_keys", "Keys in the hot list.", "port")
	distinctKeys = gauge("distinct_keys", "Distinct keys accessed in the last minute, estimated.", "port")
	listChanges  = counter("list_changes_total", "Changes of the hot list.", "port", "change")
	listOverflow = counter("list_overflow_total", "Keys that were hot while the list was full.", "port")
	requests     = counter("requests_total", "Requests decoded.", "port")
	accesses     = counter("accesses_total", "Key accesses decoded.", "port")
	commands     = counter("commands_total", "Requests decoded, by command.", "port", "command")
	sampleEvery  = gauge("sample_every", "1 in so many is looked at, by stage.", "stage")

	capturePackets = counter("capture_packets_total", "Packets captured.", "interface")
	captureBytes   = counter("capture_bytes_total", "Bytes of captured packets on the wire.", "interface")
	captureDropped = counter("capture_dropped_total", "Packets lost before hotsniff saw them.", "interface", "reason")
	flows          = gauge("flows", "Connections followed now.")
	flowsEvicted   = counter("flows_evicted_total", "Connections forgotten at a limit.", "reason")
	gaps           = counter("gaps_total", "Holes in connections: bytes that were not captured.")
	resyncs        = counter("resyncs_total", "Connections whose requests were found without their start.")
	decodeErrors   = counter("decode_errors_total", "Packets and connections that could not be decoded.", "reason")
	cutSegments    = counter("cut_segments_total", "Segments of clients longer than the snap length: the rest was not seen.")
	skippedBytes   = counter("skipped_bytes_total", "Bytes of clients that were not decoded: out of sync, or after an error.")
	resyncsRefused = counter("resyncs_refused_total", "Times that what might have been a request was refused, to invent no key.")
	otherProtocols = counter("other_protocols_total", "Connections that carry no client requests, and PROXY headers that were skipped.", "protocol")
	panics         = counter("panics_total", "Bugs of hotsniff that were survived; each makes all connections begin anew. Please report them.")
	clockSteps     = counter("clock_steps_total", "Times that the clock of packets was set back.")
	encrypted      = counter("encrypted_connections_total", "Connections found to be TLS: their keys cannot be seen.")
)

// collector turns the newest snapshot into metrics.
type collector struct {
	latest func() *pipeline.Snapshot
	top    int // keys of a port that get series
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range descs {
		ch <- d
	}
}

// emitter sends constant metrics.
type emitter struct {
	ch  chan<- prometheus.Metric
	top int
}

func (e emitter) send(d desc, value float64, labels ...string) {
	m, err := prometheus.NewConstMetric(d.Desc, d.kind, value, labels...)
	if err != nil {
		m = prometheus.NewInvalidMetric(d.Desc, err)
	}
	e.ch <- m
}

// Collect implements prometheus.Collector. Any goroutine.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.latest()
	if s == nil {
		return // nothing was captured yet: no figures are better than zeros
	}
	e := emitter{ch, c.top}
	e.capture(s)
	for i := range s.Ports {
		e.port(s, &s.Ports[i])
	}
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
	kernel, event := 1, 1
	for i := range s.Ports {
		kernel, event = max(kernel, s.Ports[i].Slow.SampleEvery), max(event, s.Ports[i].Slow.EventEvery)
	}
	e.send(sampleEvery, float64(kernel), "kernel")
	e.send(sampleEvery, float64(event), "event")
}

// port sends the figures of one server port.
func (e emitter) port(s *pipeline.Snapshot, p *pipeline.PortSnapshot) {
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
	e.keys(port, t)
}

// keys sends the series of each key. Keys that have become one label are one
// row: the sum of what can be added up, the first of what cannot.
func (e emitter) keys(port string, t *topk.Snapshot) {
	rows := make(map[string]*topk.KeyStat, len(t.Keys))
	order := make([]string, 0, len(t.Keys))
	rest := 1.0
	for _, k := range pipeline.TopKeys(t.Keys, e.top) { // copies: rows are added up
		rest -= k.Share
		label := keyLabel(k.Key)
		if row, ok := rows[label]; ok {
			merge(row, &k)
			continue
		}
		rows[label] = &k
		order = append(order, label)
	}
	for _, label := range order {
		e.key(port, label, t, rows[label])
	}
	if t.Accesses > 0 {
		e.send(otherShare, max(rest, 0), port)
	}
}

func merge(row, k *topk.KeyStat) {
	row.Share += k.Share
	row.ShareLow += k.ShareLow
	row.Rate += k.Rate
	row.Accesses += k.Accesses
	row.Reads += k.Reads
	row.Writes += k.Writes
	row.RequestBytes += k.RequestBytes
	row.ReplyBytes += k.ReplyBytes
	row.Clients = max(row.Clients, k.Clients)
	if k.Since != 0 && (row.Since == 0 || k.Since < row.Since) {
		row.Since, row.State = k.Since, k.State
	}
}

// key sends the series of one row.
func (e emitter) key(port, label string, t *topk.Snapshot, k *topk.KeyStat) {
	e.send(keyShare, k.Share, port, label)
	e.send(keyShareLow, k.ShareLow, port, label)
	seconds := max(float64(t.T-t.From)/1e9, 1)
	writes := 0.0
	if k.Reads+k.Writes > 0 {
		writes = k.Rate * float64(k.Writes) / float64(k.Reads+k.Writes)
	}
	e.send(keyRate, k.Rate-writes, port, label, "read")
	e.send(keyRate, writes, port, label, "write")
	e.send(keyBytes, float64(k.RequestBytes)/seconds, port, label, "request")
	e.send(keyBytes, float64(k.ReplyBytes)/seconds, port, label, "reply")
	e.send(keyClients, float64(k.Clients), port, label)
	if k.Since == 0 {
		e.send(keyHot, 0, port, label)
		return
	}
	e.send(keyHot, 1, port, label)
	e.send(keySince, float64(k.Since)/1e9, port, label)
}
