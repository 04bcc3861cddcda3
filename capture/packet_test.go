package capture

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

func decodeBytes(link LinkType, b []byte, wire int) (Segment, Verdict) {
	var s Segment
	v := Decode(&Packet{Data: b, WireLen: wire, T: 7, Link: link}, &s)
	return s, v
}

var allLinks = []LinkType{LinkTypeEthernet, LinkTypeLinuxSLL, LinkTypeLinuxSLL2, LinkTypeNull, LinkTypeLoop,
	LinkTypeRaw, LinkTypeRawBSD, LinkTypeRawOpen, LinkTypeIPv4, LinkTypeIPv6}

func TestDecodeFindsTheSegment(t *testing.T) {
	with := func(change func(f *frame)) frame { f := request(); change(&f); return f }
	tests := []struct {
		name string
		f    frame
	}{
		{"plain", request()},
		{"TCP options", with(func(f *frame) { f.tcpOptions = 40 })},
		{"IPv4 options", with(func(f *frame) { f.ipOptions = 40 })},
		{"padding behind the IP packet", with(func(f *frame) { f.padding = 18 })},
		{"padding behind an empty segment", with(func(f *frame) { f.payload, f.padding = "", 6 })},
		{"length 0, as long as the frame", with(func(f *frame) { f.lengthZero = true })},
		{"a frame over 64 KiB with length 0", with(func(f *frame) { f.lengthZero, f.payload = true, string(make([]byte, 100_000)) })},
		{"IPv6", with(func(f *frame) { f.v6 = true })},
		{"IPv6 hop-by-hop", with(func(f *frame) { f.v6, f.extensions = true, []byte{protoHopByHop} })},
		{"IPv6, all extension headers", with(func(f *frame) {
			f.v6, f.extensions = true, []byte{protoHopByHop, protoDestOpts, protoRouting, protoAH, protoDestOpts}
		})},
		{"IPv6 length 0", with(func(f *frame) { f.v6, f.lengthZero, f.extensions = true, true, []byte{protoHopByHop} })},
		{"don't fragment", with(func(f *frame) { f.fragment = 0x4000 })},
	}
	for _, link := range allLinks {
		tagSets := [][]uint16{nil}
		if link == LinkTypeEthernet || link == LinkTypeLinuxSLL || link == LinkTypeLinuxSLL2 {
			tagSets = append(tagSets, []uint16{etherVLAN}, []uint16{etherQinQ, etherVLAN}, []uint16{etherQinQ91, etherVLAN})
		}
		for _, tags := range tagSets {
			for _, tt := range tests {
				f := tt.f
				f.link, f.vlans = link, tags
				b := f.bytes()
				s, v := decodeBytes(link, b, len(b))
				if v != Decoded {
					t.Errorf("link %d, %d tags, %s: %v", link, len(tags), tt.name, v)
					continue
				}
				if string(s.Payload) != f.payload || s.WireLen != len(f.payload) || s.Seq != f.seq || s.Ack != f.ack ||
					s.Flags != f.flags || s.SrcPort != f.srcPort || s.DstPort != f.dstPort || s.T != 7 {
					t.Errorf("link %d, %d tags, %s: wrong segment, %d bytes", link, len(tags), tt.name, len(s.Payload))
				}
				src, dst := [16]byte{10: 0xff, 11: 0xff, 12: 10, 15: 7}, [16]byte{10: 0xff, 11: 0xff, 12: 10, 15: 1}
				if f.v6 {
					src, dst = [16]byte{0: 0xfd, 15: 7}, [16]byte{0: 0xfd, 15: 1}
				}
				if s.Src != src || s.Dst != dst {
					t.Errorf("link %d, %s: addresses %x %x", link, tt.name, s.Src, s.Dst)
				}
			}
		}
	}
}

func TestDecodeTellsWhatTheSnapLengthCut(t *testing.T) {
	b := request().bytes()
	const headers = 14 + 20 + 20
	for have := range len(b) + 1 {
		s, v := decodeBytes(LinkTypeEthernet, b[:have], len(b))
		switch {
		case have < headers && v != Truncated:
			t.Errorf("%d bytes: %v, want truncated", have, v)
		case have >= headers && (v != Decoded || s.WireLen != 14 || !bytes.Equal(s.Payload, b[headers:have])):
			t.Errorf("%d bytes: %v, payload %q of %d", have, v, s.Payload, s.WireLen)
		}
	}
	// Cut inside the TCP options: the sequence number is there, no payload is.
	f := request()
	f.tcpOptions = 12
	b = f.bytes()
	if s, v := decodeBytes(LinkTypeEthernet, b[:headers+4], len(b)); v != Decoded || len(s.Payload) != 0 || s.WireLen != 14 {
		t.Errorf("cut in the options: %v %+v", v, s)
	}
}

// malformed are packets that are not a whole TCP segment; they also seed the
// fuzz target.
var malformed = []struct {
	name string
	link LinkType
	make func() []byte
	want Verdict
}{
	{"nothing", LinkTypeEthernet, func() []byte { return nil }, Malformed},
	{"a short Ethernet header", LinkTypeEthernet, func() []byte { return make([]byte, 13) }, Malformed},
	{"a short tag", LinkTypeEthernet, func() []byte { return append(make([]byte, 12), 0x81, 0, 0) }, Malformed},
	{"five tags", LinkTypeEthernet, func() []byte {
		f := request()
		f.vlans = []uint16{etherVLAN, etherVLAN, etherVLAN, etherVLAN, etherVLAN}
		return f.bytes()
	}, NotIP},
	{"ARP", LinkTypeEthernet, func() []byte { return append(make([]byte, 12), 8, 6, 0, 0, 0, 0) }, NotIP},
	{"802.3 with LLC", LinkTypeEthernet, func() []byte { return append(make([]byte, 12), 0, 38, 0xaa, 0xaa) }, NotIP},
	{"a short cooked header", LinkTypeLinuxSLL, func() []byte { return make([]byte, 15) }, Malformed},
	{"a short cooked v2 header", LinkTypeLinuxSLL2, func() []byte { return make([]byte, 19) }, Malformed},
	{"a short loopback header", LinkTypeNull, func() []byte { return make([]byte, 3) }, Malformed},
	{"a loopback family nobody uses", LinkTypeNull, func() []byte { return []byte{99, 0, 0, 0, 0x45} }, NotIP},
	{"no raw packet", LinkTypeRaw, func() []byte { return nil }, Malformed},
	{"raw version 5", LinkTypeRaw, func() []byte { return []byte{0x55} }, NotIP},
	{"IPv4 in an IPv6 frame", LinkTypeEthernet, mutate(12, 0x86, 0xdd), Malformed},
	{"IPv6 in an IPv4 frame", LinkTypeEthernet, mutate(14, 0x65), Malformed},
	{"IPv4 header length 16", LinkTypeEthernet, mutate(14, 0x44), Malformed},
	{"IPv4 total length below its header", LinkTypeEthernet, mutate(16, 0, 19), Malformed},
	{"IPv4 total length without a TCP header", LinkTypeEthernet, mutate(16, 0, 39), Malformed},
	{"UDP", LinkTypeEthernet, mutate(23, 17), NotTCP},
	{"the first fragment", LinkTypeEthernet, mutate(20, 0x20, 0), Fragment},
	{"a later fragment", LinkTypeEthernet, mutate(20, 0, 9), Fragment},
	{"TCP header length 16", LinkTypeEthernet, mutate(46, 0x40), Malformed},
	{"TCP header beyond the packet", LinkTypeEthernet, mutate(46, 0xf0), Malformed},
	{"IPv6 fragment", LinkTypeEthernet, v6with(protoFragment), Fragment},
	{"IPv6 no next header", LinkTypeEthernet, v6with(59), NotTCP},
	{"IPv6 with too many extension headers", LinkTypeEthernet, v6with(0, 60, 60, 60, 60, 60, 60, 60, 60), Malformed},
	{"IPv6 extension header beyond the packet", LinkTypeEthernet, func() []byte {
		b := v6with(protoHopByHop)()
		b[14+40+1] = 255
		return b
	}, Malformed},
	{"an unknown link type", LinkType(105), func() []byte { return request().bytes() }, UnknownLink},
}

func mutate(at int, with ...byte) func() []byte {
	return func() []byte {
		b := request().bytes()
		copy(b[at:], with)
		return b
	}
}

func v6with(extensions ...byte) func() []byte {
	return func() []byte {
		f := request()
		f.v6, f.extensions = true, extensions
		return f.bytes()
	}
}

func TestDecodeMalformed(t *testing.T) {
	for _, tt := range malformed {
		b := tt.make()
		if _, got := decodeBytes(tt.link, b, len(b)); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	if _, got := decodeBytes(LinkTypeEthernet, request().bytes(), 1<<30); got != Malformed {
		t.Errorf("a frame of 1 GiB: %v", got)
	}
}

func TestVerdictNames(t *testing.T) {
	seen := map[string]bool{}
	for v := range NumVerdicts {
		if v.String() == "" || v.String() == "invalid" || seen[v.String()] {
			t.Errorf("verdict %d is called %q", v, v)
		}
		seen[v.String()] = true
	}
}

func TestDecodeDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	b := request().bytes()
	p := Packet{Data: b, WireLen: len(b), Link: LinkTypeEthernet}
	var s Segment
	if n := testing.AllocsPerRun(100, func() { Decode(&p, &s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// layerParser is gopacket's decoder as the oracle.
type layerParser struct {
	eth  layers.Ethernet
	vlan [4]layers.Dot1Q
	ip4  layers.IPv4
	ip6  layers.IPv6
	tcp  layers.TCP
}

// decode decodes an Ethernet frame with gopacket, layer by layer. It returns nil
// where there is no segment, and for IPv6 extension headers.
func (l *layerParser) decode(b []byte) (tcp *layers.TCP, src, dst []byte) {
	if l.eth.DecodeFromBytes(b, gopacket.NilDecodeFeedback) != nil {
		return nil, nil, nil
	}
	kind, rest := l.eth.EthernetType, l.eth.Payload
	for i := range l.vlan {
		if kind != layers.EthernetTypeDot1Q && kind != layers.EthernetTypeQinQ && kind != 0x9100 {
			break
		}
		if l.vlan[i].DecodeFromBytes(rest, gopacket.NilDecodeFeedback) != nil {
			return nil, nil, nil
		}
		kind, rest = l.vlan[i].Type, l.vlan[i].Payload
	}
	switch kind {
	case layers.EthernetTypeIPv4:
		if l.ip4.DecodeFromBytes(rest, gopacket.NilDecodeFeedback) != nil || l.ip4.Version != 4 ||
			l.ip4.Protocol != layers.IPProtocolTCP || l.ip4.FragOffset != 0 || l.ip4.Flags&layers.IPv4MoreFragments != 0 {
			return nil, nil, nil
		}
		rest, src, dst = l.ip4.Payload, l.ip4.SrcIP.To16(), l.ip4.DstIP.To16()
	case layers.EthernetTypeIPv6:
		if l.ip6.DecodeFromBytes(rest, gopacket.NilDecodeFeedback) != nil || l.ip6.Version != 6 ||
			l.ip6.NextHeader != layers.IPProtocolTCP {
			return nil, nil, nil
		}
		rest, src, dst = l.ip6.Payload, l.ip6.SrcIP, l.ip6.DstIP
	default:
		return nil, nil, nil
	}
	if l.tcp.DecodeFromBytes(rest, gopacket.NilDecodeFeedback) != nil {
		return nil, nil, nil
	}
	return &l.tcp, src, dst
}

// agree checks that what gopacket decodes whole is what Decode finds.
func agree(t *testing.T, l *layerParser, b []byte) {
	t.Helper()
	tcp, src, dst := l.decode(b)
	s, v := decodeBytes(LinkTypeEthernet, b, len(b))
	if tcp == nil {
		return
	}
	if v != Decoded {
		t.Fatalf("%x: %v, gopacket decodes it", b, v)
	}
	if s.Seq != tcp.Seq || s.Ack != tcp.Ack || s.SrcPort != uint16(tcp.SrcPort) || s.DstPort != uint16(tcp.DstPort) ||
		!bytes.Equal(s.Payload, tcp.Payload) || !bytes.Equal(s.Src[:], src) || !bytes.Equal(s.Dst[:], dst) {
		t.Fatalf("%x:\n ours   %+v\n theirs %+v", b, s, tcp)
	}
}

func TestDecodeAgreesWithGopacket(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var l layerParser
	decoded := 0
	for range 20_000 {
		f := request()
		f.v6 = rng.IntN(3) == 0
		f.seq, f.ack, f.srcPort, f.flags = rng.Uint32(), rng.Uint32(), uint16(rng.Uint32()), byte(rng.Uint32())
		f.payload = string(make([]byte, rng.IntN(100)))
		f.tcpOptions, f.ipOptions, f.padding = 4*rng.IntN(11), 4*rng.IntN(11), rng.IntN(20)
		f.vlans = [][]uint16{nil, {etherVLAN}, {etherQinQ, etherVLAN}}[rng.IntN(3)]
		b := f.bytes()
		tcp, _, _ := l.decode(b)
		if _, v := decodeBytes(LinkTypeEthernet, b, len(b)); tcp != nil && v == Decoded {
			decoded++
		}
		agree(t, &l, b)
		for range 3 { // damage
			b[rng.IntN(len(b))] ^= byte(1 << rng.IntN(8))
			agree(t, &l, b)
		}
	}
	if decoded < 19_000 {
		t.Errorf("only %d frames were comparable", decoded)
	}
}

func TestDecodeAgreesOnCaptures(t *testing.T) {
	var l layerParser
	for _, path := range captures(t) {
		src, err := OpenFiles([]string{path}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var p Packet
		for {
			err := src.Next(&p)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if p.Link == LinkTypeEthernet {
				agree(t, &l, p.Data)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, tt := range malformed {
		f.Add(uint32(tt.link), tt.make(), 0)
	}
	for _, link := range allLinks {
		r := request()
		r.link = link
		f.Add(uint32(link), r.bytes(), 100)
		r.v6, r.extensions = true, []byte{0, 43, 51, 60}
		f.Add(uint32(link), r.bytes(), 0)
	}
	f.Fuzz(func(t *testing.T, link uint32, b []byte, more int) {
		wire := len(b) + more
		var s Segment
		v := Decode(&Packet{Data: b, WireLen: wire, Link: LinkType(link)}, &s)
		if v >= NumVerdicts {
			t.Fatalf("verdict %d", v)
		}
		if v != Decoded {
			return
		}
		if s.WireLen < len(s.Payload) || s.WireLen > maxWire || len(s.Payload) > len(b) {
			t.Fatalf("payload %d of %d in %d bytes", len(s.Payload), s.WireLen, len(b))
		}
		// A longer capture of the same packet finds the same headers.
		if _, again := decodeBytes(LinkType(link), append(bytes.Clone(b), 0), max(wire, len(b)+1)); again == Truncated {
			t.Fatal("truncated with more bytes")
		}
		if LinkType(link) == LinkTypeEthernet && more <= 0 && binary.BigEndian.Uint16(b[12:]) == etherIPv4 {
			var l layerParser
			agree(t, &l, b)
		}
	})
}
