package doctor

import (
	"encoding/binary"
	"hash/maphash"
	"time"

	"github.com/hotsniff/hotsniff/capture"
)

const (
	// sightings is how many segments are remembered; at 100,000 packets a
	// second that is the last 80 ms.
	sightings = 8192
	// soon is how close the copies of a segment on two devices follow each
	// other. A retransmission takes a round trip and 200 ms at least by timer.
	soon = 5 * time.Millisecond
)

// observer is a Source that looks at what passes.
type observer struct {
	capture.Source
	seg  capture.Segment
	seed maphash.Seed
	last [sightings]sighting

	packets, segments, twice uint64
	leastLag                 time.Duration // of all packets, from their stamp to the reader
	firstT, lastT            time.Duration // packet time, since the epoch
	firstSeen, lastSeen      time.Time     // with the monotonic clock
}

// sighting is the last segment with a hash.
type sighting struct {
	hash uint64
	t    int64
}

// Next implements capture.Source.
func (o *observer) Next(p *capture.Packet) error {
	err := o.Source.Next(p)
	if err == nil {
		o.note(p, time.Now())
	}
	return err
}

func (o *observer) note(p *capture.Packet, now time.Time) {
	lag := time.Duration(now.UnixNano() - p.T)
	if o.packets == 0 {
		o.seed = maphash.MakeSeed()
		o.leastLag, o.firstT, o.firstSeen = lag, time.Duration(p.T), now
	}
	o.packets++
	o.leastLag = min(o.leastLag, lag)
	o.lastT, o.lastSeen = time.Duration(p.T), now
	if capture.Decode(p, &o.seg) != capture.Decoded || len(o.seg.Payload) == 0 {
		return
	}
	o.segments++
	h := o.hash()
	at := &o.last[h%sightings]
	if at.hash == h && time.Duration(p.T-at.t).Abs() < soon {
		o.twice++
	}
	*at = sighting{h, p.T}
}

// hash is of what makes a segment this one: the connection, and its place and
// length in it.
func (o *observer) hash() uint64 {
	s := &o.seg
	var b [16 + 16 + 2 + 2 + 4 + 4]byte
	copy(b[:16], s.Src[:])
	copy(b[16:32], s.Dst[:])
	binary.LittleEndian.PutUint16(b[32:], s.SrcPort)
	binary.LittleEndian.PutUint16(b[34:], s.DstPort)
	binary.LittleEndian.PutUint32(b[36:], s.Seq)
	binary.LittleEndian.PutUint32(b[40:], uint32(s.WireLen))
	return maphash.Bytes(o.seed, b[:])
}
