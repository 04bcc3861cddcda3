package resp

// Stats are the counters of a Decoder. Plain fields, written by its goroutine.
type Stats struct {
	Requests   uint64 // handed out by Next; one for all parts of a request
	Accesses   uint64 // keys handed out
	Unknown    uint64 // requests of commands outside the table
	NoKey      uint64 // requests without a key, unknown ones included
	Inline     uint64 // requests that were lines of text
	WrongArity uint64 // requests that the server rejects for their arguments

	// Errors counts why decoding of a connection stopped, by Reason.
	Errors [NumReasons]uint64

	Holes          uint64 // client bytes that were not captured, told by Skip
	HoleBytes      uint64 // their number, where known
	HolesBridged   uint64 // holes inside an argument: nothing was lost but it
	Resyncs        uint64 // connections that got in sync without their start
	ResyncsRefused uint64 // turns that did not look like a request
	SkippedBytes   uint64 // client bytes not decoded: out of sync, or closing
	EncryptedBytes uint64 // client bytes of TLS connections

	Encrypted    uint64 // connections found to be TLS
	Replication  uint64 // connections found to be of a replica
	HTTP         uint64 // connections found to be HTTP
	ProxyHeaders uint64 // PROXY headers stripped

	HeldDropped     uint64 // requests held for proof and then dropped
	HoldsEvicted    uint64 // holds given up at a limit
	PartialsEvicted uint64 // unfinished requests given up at a limit
	Damaged         uint64 // requests whose keys fell into a hole
	KeysDropped     uint64 // keys beyond what one request may hold back

	// Packets that were taken by themselves, see FeedSampled. Where bytes are
	// the measure, SampledRequestBytes / SampledBytes is the part of the traffic
	// whose requests are seen: a request counts with all it announces in the
	// packet of its head, which is picked as often as any other.
	SampledPackets      uint64
	SampledRefused      uint64 // that do not begin with a request, or are not requests to their end
	SampledBytes        uint64
	SampledRequestBytes uint64

	// Gauges.
	Partials     int // unfinished requests
	PartialBytes int // memory they keep
	Holds        int // connections on trial
	HoldBytes    int // memory of their held requests
}

// Stats returns the counters, brought up to date; valid until the next call
// of any method.
func (d *Decoder) Stats() *Stats {
	s := &d.stats
	s.Partials, s.PartialBytes, s.PartialsEvicted = d.parts.inUse, d.parts.bytes, d.parts.evicted
	s.Holds, s.HoldBytes, s.HoldsEvicted = d.holds.inUse, d.holds.bytes, d.holds.evicted
	return s
}
