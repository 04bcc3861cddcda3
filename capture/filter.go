package capture

import (
	"fmt"
	"strings"
)

// maxFilterRanges bounds the port ranges of a filter. Each costs two
// instructions in up to six arms, and the kernel takes 4096 in all; beyond it
// neighbouring ranges are joined, and the assembler drops what is let in too
// much.
const maxFilterRanges = 64

// Filter expressions of libpcap (pcap-filter(7)). tcp[...] never matches IPv6
// and ip[2:2] is an IPv4 length, so each family needs its own arm.
const (
	// A length of 0 (segmentation offload) makes the difference negative,
	// which as an unsigned number is not 0 either: accepted, as it must be.
	ipv4Payload = "ip[2:2] - ((ip[0] & 0xf) << 2) - ((tcp[12] & 0xf0) >> 2) != 0"
	ipv6Payload = "ip6[4:2] - ((ip6[52] & 0xf0) >> 2) != 0"
	// FIN, SYN and RST: where connections begin and end.
	ipv4Marks = "tcp[13] & 0x7 != 0"
	ipv6Marks = "ip6[53] & 0x7 != 0"
	// IPv6 with an extension header that may precede TCP. Where TCP begins is
	// beyond what a filter can follow, so all of these are let in: hop-by-hop
	// (BIG TCP has one), routing, fragment, AH and destination options.
	ipv6Extended = "ip6[6] = 0 or ip6[6] = 43 or ip6[6] = 44 or ip6[6] = 51 or ip6[6] = 60"
)

// Filter returns the libpcap expression of a live capture: TCP segments to the
// ports that carry payload or begin or end a connection, in IPv4 and IPv6. With
// vlan it also accepts frames with one or two VLAN tags in the packet, which
// only Ethernet devices have. It is part of what doctor shows.
func Filter(ports *PortSet, direction Direction, vlan bool) string {
	base := familyArms(ports)
	if vlan {
		// "vlan" moves all offsets behind it, so the arms nest.
		base = fmt.Sprintf("%s or (vlan and (%s or (vlan and (%s))))", base, base, base)
	}
	if direction == Out {
		// The loopback device shows each packet as arriving.
		return fmt.Sprintf("(%s) and (outbound or src net 127.0.0.0/8 or src host ::1)", base)
	}
	return base
}

// inboundFilter is the fallback when the kernel cannot be told to leave
// outgoing packets out of the capture.
func inboundFilter(expression string) string { return "inbound and (" + expression + ")" }

func familyArms(ports *PortSet) string {
	var v4, v6 []string
	for _, r := range portRanges(ports.Ports(), maxFilterRanges) {
		if r.lo == r.hi {
			v4 = append(v4, fmt.Sprintf("tcp[2:2] = %d", r.lo))
			v6 = append(v6, fmt.Sprintf("ip6[42:2] = %d", r.lo))
			continue
		}
		v4 = append(v4, fmt.Sprintf("(tcp[2:2] >= %d and tcp[2:2] <= %d)", r.lo, r.hi))
		v6 = append(v6, fmt.Sprintf("(ip6[42:2] >= %d and ip6[42:2] <= %d)", r.lo, r.hi))
	}
	return fmt.Sprintf("(ip and tcp and (%s) and (%s or %s)) or (ip6 and ((ip6[6] = 6 and (%s) and (%s or %s)) or %s))",
		strings.Join(v4, " or "), ipv4Payload, ipv4Marks,
		strings.Join(v6, " or "), ipv6Payload, ipv6Marks, ipv6Extended)
}
