package pipeline

import (
	"encoding/binary"

	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/resp"
)

// thin is the state of the path for packets that the kernel picked at random:
// no byte stream can be followed then, so each packet is decoded by itself
// (resp.Decoder.FeedSampled) and what it holds counts as often as packets were
// passed over.
//
// What this sees and what not. A request counts in the packet that holds its
// head, with the chance of any packet, so counts times N are unbiased for all
// requests that begin a packet or follow on others that do. Not seen are heads
// behind the end of a value that began in an earlier packet, and inline
// requests. Whether a head is seen depends on the requests before it in its
// pipeline, not on its own key or size, so shares are unbiased as long as keys
// do not follow on each other by rule and clients pipeline alike;
// Thinning.Coverage says which part of the bytes was seen. A key that the end
// of a packet cuts off is lost: of two keys the longer one by so much as the
// difference of their lengths is of a packet.
type thin struct {
	on    bool
	every int   // the N of the latest packet, at least 1
	until int64 // packets of N = 1 before this time are decoded by themselves too
	seen  [thinSlots]thinFlow
}

const (
	// thinSlots connections are remembered by what their last sampled packet
	// was, 256 KiB; another one with the same slot displaces it, and is then
	// judged by its packets alone.
	thinSlots = 1 << 14
	// thinSettle is how long packets that the kernel kept under the old N may
	// still come between those of the new one, from several devices.
	thinSettle = int64(100e6)
	// maxStandIn is how many keys of a request one of its visible keys may
	// stand for, beyond itself: the number is only announced, and which keys
	// come first in a request is no chance.
	maxStandIn = 3
)

// thinFlow is what is known of a connection from its last sampled packet.
type thinFlow struct {
	tag        uint32 // of the addresses and ports; 0 is none
	ack        uint32
	start, end uint32 // sequence numbers of its last requests, with the bytes they announce
}

// weigh makes accesses from now on stand for n.
func (e *Engine) weigh(n int) {
	if n == e.thin.every {
		return
	}
	e.thin.every = n
	for _, p := range e.active {
		if p.detector != nil {
			p.detector.SetSampleEvery(n)
		}
	}
}

// thinned takes the segment in hand by itself.
func (e *Engine) thinned() {
	s, t, n := &e.seg, &e.thin, max(e.pkt.SampleEvery, 1)
	switch {
	case n > 1:
		if !t.on {
			t.on = true
			e.reconnect()
		}
		t.until = s.T + thinSettle
	case s.T >= t.until:
		// Every packet comes again: connections are joined in the middle.
		t.on = false
		e.weigh(1)
		e.asm.Add(s)
		return
	}
	e.weigh(n)
	if len(s.Payload) == 0 || !e.cfg.Ports.Has(s.DstPort) || e.cfg.Ports.Has(s.SrcPort) {
		// With both ports among the servers' nothing tells a request from
		// what a master sends to its replica.
		return
	}
	f, known := t.flow(s)
	switch {
	case known && f.holds(s), known && f.goesOn(s):
		e.dec.RefuseSampled(s.Payload)
	case e.dec.FeedSampled(s.Payload):
		e.drainThinned(uint64(n))
		f.start, f.end = s.Seq, s.Seq+uint32(len(s.Payload))+uint32(e.dec.SampledBeyond())
	}
	f.ack = s.Ack
}

// flow returns what is known of the segment's connection; known is false when
// that is nothing.
func (t *thin) flow(s *capture.Segment) (f *thinFlow, known bool) {
	le := binary.LittleEndian
	h := le.Uint64(s.Src[:8])*0x9e3779b97f4a7c15 ^ le.Uint64(s.Src[8:])*0xc2b2ae3d27d4eb4f ^
		le.Uint64(s.Dst[:8])*0x165667b19e3779f9 ^ le.Uint64(s.Dst[8:])*0x27d4eb2f165667c5 ^
		(uint64(s.SrcPort)<<16|uint64(s.DstPort))*0x85ebca77c2b2ae63
	h ^= h >> 29
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 32
	f = &t.seen[h%thinSlots]
	tag := uint32(h>>14) | 1
	if f.tag == tag {
		return f, true
	}
	*f = thinFlow{tag: tag}
	return f, false
}

// holds reports whether the segment lies in bytes that are known to be of
// requests: inside a value, or seen before.
func (f *thinFlow) holds(s *capture.Segment) bool { return s.Seq-f.start < f.end-f.start }

// goesOn reports whether the segment is in the middle of a long write: one
// without PSH, while an earlier segment was sampled with the same
// acknowledgement, so that the server said nothing in between. Of a value full
// of requests as text at most the first sampled packet can deceive, then.
func (f *thinFlow) goesOn(s *capture.Segment) bool {
	return s.Ack == f.ack && s.Flags&capture.FlagPSH == 0
}

// drainThinned counts the requests of the packet n times.
func (e *Engine) drainThinned(n uint64) {
	var p *port
	for e.dec.Next(&e.req) {
		if p == nil {
			if p = e.port(e.seg.DstPort); p == nil {
				e.refused++
				continue
			}
			if p.detector != nil {
				p.detector.BeginPacket()
			}
		}
		e.countThinned(p, n)
	}
	if p != nil && p.detector != nil {
		p.detector.EndPacket()
	}
}

// countThinned counts the request in hand n times.
func (e *Engine) countThinned(p *port, n uint64) {
	r := &e.req
	if r.Flags&resp.FlagContinued == 0 {
		p.request(int(r.Command), n)
	}
	if len(r.Keys) == 0 {
		return
	}
	a := &e.access
	a.T, a.Client, a.Command = e.seg.T, e.seg.Src, uint16(r.Command)
	a.Bytes = r.Bytes / int64(len(r.Keys))
	for i := range r.Keys {
		k := &r.Keys[i]
		if ours(k.Bytes) {
			continue
		}
		a.Key, a.KeyLen = k.Bytes, k.Len
		a.Read, a.Write = k.Access&resp.AccessRead != 0, k.Access&resp.AccessWrite != 0
		w := n
		if r.Unseen > 0 {
			w = e.standIn(n)
			p.setWeight(w)
		}
		p.accesses += w
		p.add(a)
	}
	if r.Unseen > 0 {
		p.setWeight(n)
	}
}

// standIn is how often a visible key of the request in hand counts, so that
// all of them together count for those behind the packet as well; what is no
// whole number is rounded at random.
func (e *Engine) standIn(n uint64) uint64 {
	visible := uint64(len(e.req.Keys))
	unseen := min(uint64(e.req.Unseen), maxStandIn*visible) * n
	w := n + unseen/visible
	if uint64(e.rand())%visible < unseen%visible {
		w++
	}
	return w
}
