package capture

import (
	"fmt"
	"strings"
)

const (
	// maxFilterRanges bounds the port ranges of a filter. Each costs two
	// instructions in each family, and the kernel takes 4096 in all; beyond it
	// neighbouring ranges are joined, and the assembler drops what is let in
	// too much.
	maxFilterRanges = 64
	// maxTaggedRanges is the same for frames with VLAN tags inside, where each
	// range costs ten times as much.
	maxTaggedRanges = 4
)

// Filter returns the libpcap expression (pcap-filter(7)) of a live capture: TCP
// segments to the ports that carry payload or begin or end a connection, in
// IPv4 and IPv6. With ethernet it also accepts frames that have one or two VLAN
// tags in the packet: the kernel takes the outer tag out of a frame, so these
// are the inner tags of QinQ.
func Filter(ports *PortSet, direction Direction, ethernet bool) string {
	arms := plainArms(ports)
	if ethernet {
		arms += " or " + taggedArms(ports, 1) + " or " + taggedArms(ports, 2)
	}
	if direction == Out {
		return outboundFilter(arms)
	}
	return arms
}

// outboundFilter restricts to packets that leave. The loopback device shows its
// packets as arriving, so these are let in by address.
func outboundFilter(expression string) string {
	return "(outbound or src net 127.0.0.0/8 or src host ::1) and (" + expression + ")"
}

// plainArms are the arms for packets without tags. tcp[...] never matches IPv6
// and ip[2:2] is an IPv4 length, so each family needs its own.
//
// The payload length is the IP length less both headers. A length of 0
// (segmentation offload) makes the difference negative, which as an unsigned
// number is not 0 either: accepted, as it must be.
func plainArms(ports *PortSet) string {
	ranges := portRanges(ports.Ports(), maxFilterRanges)
	return fmt.Sprintf("(ip and tcp and %s and (tcp[13] & 0x7 != 0 or ip[2:2] - ((ip[0] & 0xf) << 2) - ((tcp[12] & 0xf0) >> 2) != 0))"+
		" or (ip6 and ((ip6[6] = 6 and %s and (ip6[53] & 0x7 != 0 or ip6[4:2] - ((ip6[52] & 0xf0) >> 2) != 0)) or %s))",
		inRanges("tcp[2:2]", ranges), inRanges("ip6[42:2]", ranges), ipv6Extended("ip6[6]"))
}

// taggedArms are the arms for Ethernet frames with this many tags, spelled out
// by offset: in libpcap 1.10 the "vlan" keyword on a live device shares a
// register with the arithmetic before it and then reads the wrong place.
func taggedArms(ports *PortSet, tags int) string {
	ranges := portRanges(ports.Ports(), maxTaggedRanges)
	tagged := "(ether[12:2] = 0x8100 or ether[12:2] = 0x88a8 or ether[12:2] = 0x9100)"
	if tags == 2 {
		tagged += " and ether[16:2] = 0x8100"
	}
	ip := 14 + 4*tags
	ether := func(at int) string { return fmt.Sprintf("ether[%d]", at) }
	header := fmt.Sprintf("((%s & 0xf) << 2)", ether(ip)) // length of the IPv4 header
	v4 := fmt.Sprintf("(ether[%d:2] = 0x800 and ether[%d] = 6 and ether[%d:2] & 0x1fff = 0 and %s and (%s & 0x7 != 0 or %s - %s - ((%s & 0xf0) >> 2) != 0))",
		ip-2, ip+9, ip+6,
		inRanges(fmt.Sprintf("ether[%d + %s:2]", ip+2, header), ranges),
		fmt.Sprintf("ether[%d + %s]", ip+13, header),
		fmt.Sprintf("ether[%d:2]", ip+2), header,
		fmt.Sprintf("ether[%d + %s]", ip+12, header))
	v6 := fmt.Sprintf("(ether[%d:2] = 0x86dd and ((%s = 6 and %s and (%s & 0x7 != 0 or ether[%d:2] - ((%s & 0xf0) >> 2) != 0)) or %s))",
		ip-2, ether(ip+6),
		inRanges(fmt.Sprintf("ether[%d:2]", ip+42), ranges),
		ether(ip+53), ip+4, ether(ip+52), ipv6Extended(ether(ip+6)))
	return fmt.Sprintf("(%s and (%s or %s))", tagged, v4, v6)
}

// inRanges is the condition that value lies in one of the ranges.
func inRanges(value string, ranges []portRange) string {
	var terms []string
	for _, r := range ranges {
		if r.lo == r.hi {
			terms = append(terms, fmt.Sprintf("%s = %d", value, r.lo))
		} else {
			terms = append(terms, fmt.Sprintf("(%s >= %d and %s <= %d)", value, r.lo, value, r.hi))
		}
	}
	return "(" + strings.Join(terms, " or ") + ")"
}

// ipv6Extended is the condition that an extension header follows that may
// precede TCP: hop-by-hop (BIG TCP has one), routing, fragment, AH, destination
// options. A filter cannot follow their lengths, so all of these are let in and
// Decode finds the port.
func ipv6Extended(next string) string {
	var terms []string
	for _, kind := range []int{protoHopByHop, protoRouting, protoFragment, protoAH, protoDestOpts} {
		terms = append(terms, fmt.Sprintf("%s = %d", next, kind))
	}
	return "(" + strings.Join(terms, " or ") + ")"
}
