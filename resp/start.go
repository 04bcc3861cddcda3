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
	kept := 0
	if c.part.slot != 0 {
		p := d.parts.get(c.part)
		if p == nil {
			d.lose(c)
			d.stats.SkippedBytes += uint64(len(b))
			return
		}
		kept = copy(d.first[:], p.piece)
		if p.f.phase == phaseProxy {
			n := min(int64(len(b)), p.f.rest)
			if p.f.rest -= n; p.f.rest > 0 {
				return
			}
			d.unstart(c)
			b = b[n:]
		}
	}
	what, n := d.opening(c, b, kept)
	if what == openingProxy {
		d.stats.ProxyHeaders++
		c.flags |= flagProxied
		d.unstart(c)
		if rest := n - int64(kept+len(b)); rest > 0 {
			d.awaitProxy(c, rest)
			return
		}
		b, kept = b[n-int64(kept):], 0
		// What the proxy passes on may be TLS.
		what, _ = d.opening(c, b, kept)
	}
	switch what {
	case openingUnclear:
		d.keepStart(c, b)
		return
	case openingTLS:
		d.encrypted(c, kept+len(b))
		return
	}
	d.unstart(c)
	c.state = stateSynced
	d.c, d.b, d.p = c, b, 0
	if kept > 0 {
		d.b, d.more = d.first[:kept], b
	}
}

// opening classifies kept bytes in d.first and those that follow in b.
func (d *Decoder) opening(c *Conn, b []byte, kept int) (opening, int64) {
	if kept > 0 {
		b = d.first[:kept+copy(d.first[kept:], b)]
	}
	what, n := classify(b)
	if c.flags&flagProxied != 0 && (what == openingProxy || what == openingUnclear && len(b) > 0 && b[0] >= ' ') {
		return openingRequests, 0 // one header is the most
	}
	return what, n
}

// unstart drops what is kept of the first bytes.
func (d *Decoder) unstart(c *Conn) {
	d.parts.drop(c.part)
	c.part = ref{}
}

// keepStart stores first bytes that may still become anything.
func (d *Decoder) keepStart(c *Conn, b []byte) {
	if len(b) == 0 {
		return
	}
	d.c = c
	d.slot = d.parts.get(c.part)
	if d.keep(b, maxStart) {
		d.slot.f.phase = phaseStart
	}
	d.slot = nil
	d.c = nil
}

// awaitProxy waits for the rest of a PROXY header.
func (d *Decoder) awaitProxy(c *Conn, rest int64) {
	var p *partial
	p, c.part = d.parts.take()
	p.f.phase = phaseProxy
	p.f.rest = rest
}

// encrypted gives up a connection that turned out to be TLS after n bytes.
func (d *Decoder) encrypted(c *Conn, n int) {
	d.stats.Encrypted++
	d.stats.EncryptedBytes += uint64(n)
	d.unstart(c)
	c.state = stateEncrypted
}
