package export

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// desc is one metric with what its documentation needs, which a
// prometheus.Desc does not tell.
type desc struct {
	*prometheus.Desc
	kind       prometheus.ValueType
	name, help string
	labels     []string
}

func gauge(name, help string, labels ...string) *desc {
	return describe(prometheus.GaugeValue, name, help, labels)
}

func counter(name, help string, labels ...string) *desc {
	return describe(prometheus.CounterValue, name, help, labels)
}

func describe(kind prometheus.ValueType, name, help string, labels []string) *desc {
	name = "hotsniff_" + name
	return &desc{prometheus.NewDesc(name, help, labels, nil), kind, name, help, labels}
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
	requests     = counter("requests_total", "Requests decoded; one of a sampled packet counts for as many as it stands for.", "port")
	accesses     = counter("accesses_total", "Key accesses decoded, scaled by sampling as requests are.", "port")
	commands     = counter("commands_total", "Requests decoded, by command, scaled by sampling.", "port", "command")
	sampleEvery  = gauge("sample_every", "1 in so many is looked at, by stage.", "stage")
	cpuRatio     = gauge("cpu_ratio", "CPU time of the capture thread as a part of one core, averaged over about a second: what --sampling.cpu-budget bounds.")

	capturePackets = counter("capture_packets_total", "Packets captured, not scaled by sampling.", "interface")
	captureBytes   = counter("capture_bytes_total", "Bytes of captured packets on the wire, not scaled by sampling.", "interface")
	captureDropped = counter("capture_dropped_total", "Packets lost before hotsniff saw them.", "interface", "reason")
	flows          = gauge("flows", "Connections followed now; none while packets are sampled.")
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

// snapshotMetrics lists what collect makes. A test holds it complete.
func snapshotMetrics() []*desc {
	return []*desc{
		keyShare, keyShareLow, keyRate, keyBytes, keyClients, keyHot, keySince, groupShare, otherShare, hotKeys, distinctKeys,
		listChanges, listOverflow, requests, accesses, commands, sampleEvery, cpuRatio, capturePackets, captureBytes, captureDropped,
		flows, flowsEvicted, gaps, resyncs, decodeErrors, cutSegments, skippedBytes, resyncsRefused, otherProtocols,
		panics, clockSteps, encrypted,
	}
}

// Doc documents one metric.
type Doc struct {
	Name, Kind, Help string
	Labels           []string
}

// kindNames names the kinds. A desc without a value of its own is a histogram.
var kindNames = map[prometheus.ValueType]string{
	prometheus.CounterValue: "counter", prometheus.GaugeValue: "gauge", prometheus.UntypedValue: "histogram",
}

// Docs lists every metric of hotsniff itself, by name. METRICS.md is made
// from it.
func Docs() []Doc {
	var docs []Doc
	for _, d := range slices.Concat(snapshotMetrics(), monitorMetrics(), publishMetrics()) {
		docs = append(docs, Doc{d.name, kindNames[d.kind], d.help, d.labels})
	}
	docs = append(docs,
		Doc{"hotsniff_" + detectionDelayName, "histogram", detectionDelayHelp, nil},
		Doc{"hotsniff_build_info", "gauge", "1, with the version of this build as labels.", []string{"version", "revision", "branch", "goversion", "goos", "goarch", "tags"}},
	)
	slices.SortFunc(docs, func(a, b Doc) int { return strings.Compare(a.Name, b.Name) })
	return docs
}
