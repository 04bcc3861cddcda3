package resp

// FeedSampled takes the payload of one packet by itself, for captures in which
// packets are picked at random so that no byte stream can be followed. Only
// packets that begin with a request (as strict says) are decoded, up to the
// last request whose keys are all in the packet; others count as refused
// resyncs. Like Feed it is followed by calls of Next.
func (d *Decoder) FeedSampled(b []byte) {
	d.drain()
	if !d.strict(b) {
		d.stats.ResyncsRefused++
		d.stats.SkippedBytes += uint64(len(b))
		return
	}
	d.sample = Conn{state: stateSynced, flags: flagJoined}
	d.sampling = true
	d.enter(&d.sample, b)
}

// endSample ends the packet. A request that goes on behind it counts when its
// keys are known.
func (d *Decoder) endSample(r *Request) bool {
	d.sampling = false
	d.hole(&d.sample, d.parts.get(d.sample.part))
	return d.cut && d.nextCut(r)
}
