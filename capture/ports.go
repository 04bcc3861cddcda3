package capture

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// MaxPorts bounds the ports of a PortSet. Every port may get its own tables
// further up, so a typing slip such as "1-65535" must fail early; a host with
// more than a thousand Redis instances is not known.
const MaxPorts = 1024

// PortSet is a set of server ports. It is immutable and safe for concurrent
// use. A nil *PortSet is the empty set.
type PortSet struct {
	bits  [1024]uint64 // one bit a port
	rank  [1024]uint16 // ports in the words before this one, for Index
	ports []uint16     // ascending
}

// ParsePorts reads a comma-separated list of ports and ranges, such as
// "6379,7000-7005". Duplicates and overlaps are fine; port 0, an empty list, a
// reversed range and more than MaxPorts ports are errors.
func ParsePorts(list string) (*PortSet, error) {
	set := new(PortSet)
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		lo, err := parsePort(first)
		hi := lo
		if err == nil && isRange {
			hi, err = parsePort(last)
		}
		if err == nil && hi < lo {
			err = errors.New("range runs backwards")
		}
		if err != nil {
			return nil, fmt.Errorf("parse ports %q: %q: %w", list, part, err)
		}
		for port := lo; port <= hi; port++ {
			set.bits[port>>6] |= 1 << (port & 63)
		}
	}
	count := 0
	for i, word := range set.bits {
		set.rank[i] = uint16(count)
		count += bits.OnesCount64(word)
	}
	if count > MaxPorts {
		return nil, fmt.Errorf("parse ports %q: %d ports, at most %d are possible", list, count, MaxPorts)
	}
	set.ports = make([]uint16, 0, count)
	for i, word := range set.bits {
		for ; word != 0; word &= word - 1 {
			set.ports = append(set.ports, uint16(i<<6+bits.TrailingZeros64(word)))
		}
	}
	return set, nil
}

func parsePort(text string) (int, error) {
	port, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
	if err != nil || port == 0 {
		return 0, errors.New("want a port from 1 to 65535")
	}
	return int(port), nil
}

// Has reports whether port is in the set.
func (p *PortSet) Has(port uint16) bool {
	return p != nil && p.bits[port>>6]>>(port&63)&1 != 0
}

// Index returns the place of port among the ports in ascending order, from 0
// to Len()-1, or -1 if it is not in the set.
func (p *PortSet) Index(port uint16) int {
	if !p.Has(port) {
		return -1
	}
	below := p.bits[port>>6] & (1<<(port&63) - 1)
	return int(p.rank[port>>6]) + bits.OnesCount64(below)
}

// Ports returns the ports in ascending order. The caller must not change the
// slice.
func (p *PortSet) Ports() []uint16 {
	if p == nil {
		return nil
	}
	return p.ports
}

// Len returns the number of ports.
func (p *PortSet) Len() int { return len(p.Ports()) }

// String returns the set in the form that ParsePorts reads, ranges joined.
func (p *PortSet) String() string {
	var out []string
	for _, r := range portRanges(p.Ports(), MaxPorts) {
		if r.lo == r.hi {
			out = append(out, strconv.Itoa(int(r.lo)))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", r.lo, r.hi))
		}
	}
	return strings.Join(out, ",")
}

type portRange struct{ lo, hi uint16 }

// portRanges groups ascending ports into at most limit ranges. Neighbours are
// always joined; when there are still too many, the narrowest gaps are closed
// too, so the ranges then cover ports that are not in the list.
func portRanges(ports []uint16, limit int) []portRange {
	var ranges []portRange
	for _, port := range ports {
		if n := len(ranges); n > 0 && ranges[n-1].hi == port-1 {
			ranges[n-1].hi = port
			continue
		}
		ranges = append(ranges, portRange{port, port})
	}
	for len(ranges) > limit {
		narrowest := 1
		for i := 2; i < len(ranges); i++ {
			if ranges[i].lo-ranges[i-1].hi < ranges[narrowest].lo-ranges[narrowest-1].hi {
				narrowest = i
			}
		}
		ranges[narrowest-1].hi = ranges[narrowest].hi
		ranges = append(ranges[:narrowest], ranges[narrowest+1:]...)
	}
	return ranges
}
