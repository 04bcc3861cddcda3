package capture

import "encoding/binary"

// LinkType says what the first bytes of a packet are. The numbers are the
// LINKTYPE_ values that capture files carry (tcpdump.org/linktypes.html).
type LinkType uint32

// Link types that Decode understands. Raw has three numbers because capture
// files of several systems hold the platform's own DLT_RAW in its place.
const (
	LinkTypeNull      LinkType = 0   // BSD loopback, family in the writer's byte order
	LinkTypeEthernet  LinkType = 1   // with 802.1Q and QinQ tags
	LinkTypeRawBSD    LinkType = 12  // DLT_RAW of most systems
	LinkTypeRawOpen   LinkType = 14  // DLT_RAW of OpenBSD
	LinkTypeRaw       LinkType = 101 // IPv4 or IPv6, told by the version nibble
	LinkTypeLoop      LinkType = 108 // OpenBSD loopback, family in network order
	LinkTypeLinuxSLL  LinkType = 113 // Linux cooked capture, the "any" device
	LinkTypeIPv4      LinkType = 228
	LinkTypeIPv6      LinkType = 229
	LinkTypeLinuxSLL2 LinkType = 276 // Linux cooked capture v2, tcpdump -i any
)

// Packet is one captured frame. A Source fills it; the caller owns the struct
// and reuses it.
type Packet struct {
	Data      []byte   // captured bytes from the link header on; valid until the next Next of the Source
	WireLen   int      // length on the wire, >= len(Data)
	T         int64    // capture time, nanoseconds since the epoch
	Link      LinkType // what Data starts with
	Interface int      // index into Stats().Interfaces

	// SampleEvery says how the source thinned out: when this packet was taken,
	// it kept 1 in so many packets of the device, each by an independent draw.
	// This packet stands for SampleEvery packets. 0 and 1 mean that every
	// packet was kept.
	SampleEvery int
}

// TCP flags as they stand in byte 13 of the header (RFC 9293 section 3.1).
const (
	FlagFIN = 1 << 0
	FlagSYN = 1 << 1
	FlagRST = 1 << 2
	FlagPSH = 1 << 3
	FlagACK = 1 << 4
	FlagURG = 1 << 5
)

// Segment is one TCP segment. Addresses are 16 bytes; IPv4 ones are v4-mapped.
type Segment struct {
	T                int64    // capture time, nanoseconds since the epoch
	Src, Dst         [16]byte // network addresses
	SrcPort, DstPort uint16
	Seq, Ack         uint32
	Flags            uint8  // as on the wire, see FlagFIN and its neighbours
	Payload          []byte // captured part of the TCP payload, a slice of Packet.Data
	WireLen          int    // TCP payload length on the wire, >= len(Payload)
}

// Verdict says what Decode made of a packet. The data path counts verdicts; it
// never builds an error from one.
type Verdict uint8

// Verdicts of Decode. Only Decoded leaves a usable Segment.
const (
	Decoded     Verdict = iota
	NotIP               // another network protocol
	NotTCP              // IP with another transport
	Fragment            // part of a fragmented IP datagram, the first part included
	Truncated           // the snap length or a broken capture cut the headers
	Malformed           // header fields contradict each other
	UnknownLink         // a link type that Decode does not know
	NumVerdicts
)

var verdictNames = [NumVerdicts]string{
	"decoded", "not_ip", "not_tcp", "fragment", "truncated", "malformed", "unknown_link",
}

// String returns the verdict as a metric label value.
func (v Verdict) String() string {
	if v < NumVerdicts {
		return verdictNames[v]
	}
	return "invalid"
}

const (
	// maxTags bounds the stacked VLAN tags. Real networks use two; the bound
	// keeps a crafted frame from costing more than a normal one.
	maxTags = 4
	// maxExtensions bounds the IPv6 extension headers. RFC 8200 lists four
	// that may precede TCP; twice that is generous.
	maxExtensions = 8
	// maxWire bounds the frame length that Decode believes. Linux BIG TCP
	// stops at 512 KiB, so a larger one is a broken record, and believing it
	// would move a stream's sequence number by that much.
	maxWire = 1 << 20
)

// EtherTypes and IP protocol numbers (IANA registries).
const (
	etherIPv4   = 0x0800
	etherIPv6   = 0x86dd
	etherVLAN   = 0x8100 // 802.1Q
	etherQinQ   = 0x88a8 // 802.1ad
	etherQinQ91 = 0x9100 // the older QinQ tag

	protoHopByHop = 0
	protoTCP      = 6
	protoRouting  = 43
	protoFragment = 44
	protoAH       = 51
	protoDestOpts = 60
)

// Decode reads the link, network and TCP headers of p and overwrites s. It
// never allocates, never fails on hostile bytes and keeps no reference beyond
// s.Payload, which is a slice of p.Data. When the verdict is not Decoded, s
// holds nothing of use.
//
// An IPv4 total length of 0 (left by segmentation offload) and an IPv6 payload
// length of 0 (BIG TCP) mean "as long as the frame was on the wire".
func Decode(p *Packet, s *Segment) Verdict {
	b := p.Data
	wire := max(p.WireLen, len(b))
	if wire > maxWire {
		return Malformed
	}
	off, ether := 0, 0
	switch p.Link {
	case LinkTypeEthernet:
		if len(b) < 14 {
			return short(b, wire)
		}
		off, ether = 14, be16(b[12:])
	case LinkTypeLinuxSLL:
		if len(b) < 16 {
			return short(b, wire)
		}
		off, ether = 16, be16(b[14:])
	case LinkTypeLinuxSLL2:
		if len(b) < 20 {
			return short(b, wire)
		}
		off, ether = 20, be16(b)
	case LinkTypeNull, LinkTypeLoop:
		if len(b) < 4 {
			return short(b, wire)
		}
		off, ether = 4, loopFamily(b)
	case LinkTypeRaw, LinkTypeRawBSD, LinkTypeRawOpen, LinkTypeIPv4, LinkTypeIPv6:
		if len(b) < 1 {
			return short(b, wire)
		}
		ether = rawVersion(b[0])
	default:
		return UnknownLink
	}
	for i := 0; i < maxTags && (ether == etherVLAN || ether == etherQinQ || ether == etherQinQ91); i++ {
		if len(b) < off+4 {
			return short(b, wire)
		}
		ether = be16(b[off+2:])
		off += 4
	}
	switch ether {
	case etherIPv4:
		return decodeIPv4(b, off, wire, p.T, s)
	case etherIPv6:
		return decodeIPv6(b, off, wire, p.T, s)
	}
	return NotIP
}

// short tells a packet whose headers were cut by the capture from one that was
// too short on the wire already.
func short(b []byte, wire int) Verdict {
	if len(b) < wire {
		return Truncated
	}
	return Malformed
}

// loopFamily maps the address family word of a BSD loopback header to an
// EtherType. The word is in the byte order of the machine that captured, and
// AF_INET6 has a different number on each system, so both orders and all known
// numbers are accepted: none of them collide.
func loopFamily(b []byte) int {
	family := binary.BigEndian.Uint32(b)
	if family > 0xffff {
		family = binary.LittleEndian.Uint32(b)
	}
	switch family {
	case 2: // AF_INET everywhere
		return etherIPv4
	case 10, 23, 24, 28, 30: // AF_INET6: Linux, Windows, NetBSD and OpenBSD, FreeBSD, Darwin
		return etherIPv6
	}
	return 0
}

// rawVersion maps the first byte of a packet without a link header to an
// EtherType.
func rawVersion(first byte) int {
	switch first >> 4 {
	case 4:
		return etherIPv4
	case 6:
		return etherIPv6
	}
	return 0
}

// decodeIPv4 reads the header at off (RFC 791 section 3.1).
func decodeIPv4(b []byte, off, wire int, t int64, s *Segment) Verdict {
	if len(b) < off+20 {
		return short(b, wire)
	}
	h := b[off:]
	header := int(h[0]&0x0f) * 4
	if h[0]>>4 != 4 || header < 20 {
		return Malformed
	}
	total := be16(h[2:])
	if total == 0 {
		total = wire - off
	}
	if total < header {
		return Malformed
	}
	if h[9] != protoTCP {
		return NotTCP
	}
	const moreOrOffset = 0x3fff // the more-fragments bit and the fragment offset
	if be16(h[6:])&moreOrOffset != 0 {
		return Fragment
	}
	mapIPv4(&s.Src, h[12:16])
	mapIPv4(&s.Dst, h[16:20])
	return decodeTCP(b, off+header, off+total, wire, t, s)
}

// mapIPv4 writes the v4-mapped form ::ffff:a.b.c.d in two stores; byte by byte
// would stall whoever reads the address as words right after.
func mapIPv4(to *[16]byte, ip []byte) {
	binary.BigEndian.PutUint64(to[:8], 0)
	binary.BigEndian.PutUint64(to[8:], 0xffff<<32|uint64(binary.BigEndian.Uint32(ip)))
}

// decodeIPv6 reads the header at off and walks the extension headers (RFC 8200
// section 4).
func decodeIPv6(b []byte, off, wire int, t int64, s *Segment) Verdict {
	if len(b) < off+40 {
		return short(b, wire)
	}
	h := b[off:]
	if h[0]>>4 != 6 {
		return Malformed
	}
	end := off + 40 + be16(h[4:])
	if end == off+40 {
		end = wire
	}
	next, at := h[6], off+40
	for i := 0; next != protoTCP; i++ {
		if next != protoHopByHop && next != protoRouting && next != protoDestOpts && next != protoAH {
			if next == protoFragment {
				return Fragment
			}
			return NotTCP
		}
		if i == maxExtensions {
			return Malformed
		}
		if len(b) < at+8 {
			return short(b, wire)
		}
		size := (int(b[at+1]) + 1) * 8
		if next == protoAH { // counted in 4-byte units minus 2 (RFC 4302 section 2.2)
			size = (int(b[at+1]) + 2) * 4
		}
		next = b[at]
		at += size
	}
	s.Src = [16]byte(h[8:24])
	s.Dst = [16]byte(h[24:40])
	return decodeTCP(b, at, end, wire, t, s)
}

// decodeTCP reads the header at off (RFC 9293 section 3.1). end is where the IP
// packet ends on the wire, which cuts Ethernet padding and tells how much of
// the payload the snap length removed.
func decodeTCP(b []byte, off, end, wire int, t int64, s *Segment) Verdict {
	if end < off+20 {
		return Malformed
	}
	if len(b) < off+20 {
		return short(b, wire)
	}
	h := b[off : off+20 : off+20]
	data := off + int(h[12]>>4)*4
	if data < off+20 || data > end {
		return Malformed
	}
	s.T = t
	s.SrcPort = uint16(be16(h))
	s.DstPort = uint16(be16(h[2:]))
	s.Seq = binary.BigEndian.Uint32(h[4:])
	s.Ack = binary.BigEndian.Uint32(h[8:])
	s.Flags = h[13]
	s.WireLen = end - data
	s.Payload = nil
	if have := min(len(b), end); have > data {
		s.Payload = b[data:have:have]
	}
	return Decoded
}

func be16(b []byte) int { return int(binary.BigEndian.Uint16(b)) }
