package resp

import (
	"bytes"
	"encoding/binary"
)

// maxStart is the longest that the first bytes of a connection are kept before
// it is decided what they are: a PROXY v1 header has at most 107 bytes.
const maxStart = 107

// The PROXY protocol of HAProxy, versions 1 and 2 (proxy-protocol.txt): sent
// by a proxy before anything else, and no request.
const (
	proxyV1     = "PROXY "
	proxyV2     = "\r\n\r\n\x00\r\nQUIT\n"
	proxyV2Size = 16 // signature, version, family, length of the rest
)

// opening is what the first bytes of a connection are.
type opening uint8

const (
	openingRequests opening = iota
	openingUnclear          // more bytes are needed
	openingTLS
	openingProxy // a header of a known length
)

// classify looks at the first bytes. For openingProxy it returns how many
// bytes the header has.
func classify(b []byte) (what opening, n int64) {
	if len(b) == 0 {
		return openingUnclear, 0
	}
	switch b[0] {
	case 0x14, 0x15, 0x16, 0x17:
		return classifyTLS(b), 0
	case '\r':
		if !samePrefix(b, proxyV2) {
			return openingRequests, 0
		}
		if len(b) < proxyV2Size {
			return openingUnclear, 0
		}
		return openingProxy, proxyV2Size + int64(binary.BigEndian.Uint16(b[14:]))
	case 'P':
		return classifyProxyV1(b)
	}
	return openingRequests, 0
}

// classifyTLS knows a record header: type, 3, minor version. A connection that
// was joined in the middle begins with a record of another type than hello.
func classifyTLS(b []byte) opening {
	switch {
	case len(b) > 1 && b[1] != 3, len(b) > 2 && b[2] > 4:
		return openingRequests
	case len(b) < 3:
		return openingUnclear
	}
	return openingTLS
}

func classifyProxyV1(b []byte) (opening, int64) {
	if !samePrefix(b, proxyV1) {
		return openingRequests, 0
	}
	end := bytes.IndexByte(b[:min(len(b), maxStart)], '\n')
	if end < 0 {
		if len(b) >= maxStart {
			return openingRequests, 0
		}
		return openingUnclear, 0
	}
	rest := b[len(proxyV1):end]
	for _, family := range []string{"TCP4 ", "TCP6 ", "UNKNOWN"} {
		if bytes.HasPrefix(rest, []byte(family)) && bytes.HasSuffix(rest, []byte{'\r'}) {
			return openingProxy, int64(end) + 1
		}
	}
	return openingRequests, 0
}

// samePrefix reports whether b and s agree as far as both go.
func samePrefix(b []byte, s string) bool {
	n := min(len(b), len(s))
	return string(b[:n]) == s[:n]
}

// start takes bytes of a connection whose start was seen until it is clear
// what it carries.
func (d *Decoder) start(c *Conn, b []byte) {
	d.c = c
	kept := 0
	if c.part.slot != 0 {
		p := d.parts.get(c.part)
		if p == nil {
			d.lose(c)
			d.stats.SkippedBytes += uint64(len(b))
			return
		}
		if p.f.phase == phaseProxy {
			c.state = stateSynced
			d.load(p)
			d.b, d.p = b, 0
			return
		}
		kept = copy(d.first[:], p.piece)
	}
	all := b
	if kept > 0 {
		n := copy(d.first[kept:], b)
		all = d.first[:kept+n]
	}
	what, n := classify(all)
	switch what {
	case openingUnclear:
		d.keepStart(b)
		return
	case openingTLS:
		d.encrypted(c)
		d.stats.EncryptedBytes += uint64(kept + len(b))
		return
	case openingProxy:
		d.stats.ProxyHeaders++
		d.parts.drop(c.part)
		c.part = ref{}
		// What the proxy passes on may be TLS, so the next bytes are again the
		// first ones unless the header goes on behind b.
		if rest := n - int64(kept+len(b)); rest >= 0 {
			d.afterProxy(c, rest)
			return
		}
		d.start(c, b[n-int64(kept):])
		return
	}
	d.parts.drop(c.part)
	c.part = ref{}
	c.state = stateSynced
	d.b, d.p = b, 0
	if kept > 0 {
		d.b, d.more = d.first[:kept], b
	}
}

// keepStart stores first bytes that may still become anything.
func (d *Decoder) keepStart(b []byte) {
	c := d.c
	if p := d.parts.get(c.part); p != nil {
		d.slot = p
	}
	if d.keep(b, maxStart) {
		d.slot.f.phase = phaseStart
	}
	d.slot = nil
	d.c = nil
}

// afterProxy waits for the rest of a PROXY header.
func (d *Decoder) afterProxy(c *Conn, rest int64) {
	if rest > 0 {
		var p *partial
		p, c.part = d.parts.take()
		p.f.phase = phaseProxy
		p.f.rest = rest
	}
	d.c = nil
}

func (d *Decoder) encrypted(c *Conn) {
	d.stats.Encrypted++
	d.parts.drop(c.part)
	c.part = ref{}
	c.state = stateEncrypted
	d.c = nil
}
