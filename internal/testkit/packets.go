package testkit

import (
	"encoding/binary"
	"net/netip"
)

// Flow builds the frames of one client's connection: Ethernet, IPv4, TCP,
// without checksums, which nothing here looks at.
type Flow struct {
	frame []byte
	seq   uint32
	ack   uint32
}

// frameHeader is the length of the headers that Flow builds.
const frameHeader = 14 + 20 + 20

// NewFlow returns a connection from client to server whose next byte is 1.
func NewFlow(client, server netip.AddrPort) *Flow {
	f := &Flow{frame: make([]byte, frameHeader), seq: 1, ack: 1}
	binary.BigEndian.PutUint16(f.frame[12:], 0x0800)
	ip := f.frame[14:]
	ip[0], ip[8], ip[9] = 0x45, 64, 6
	src, dst := client.Addr().As4(), server.Addr().As4()
	copy(ip[12:], src[:])
	copy(ip[16:], dst[:])
	tcp := ip[20:]
	binary.BigEndian.PutUint16(tcp, client.Port())
	binary.BigEndian.PutUint16(tcp[2:], server.Port())
	tcp[12] = 5 << 4
	return f
}

// TCP flags for Frame and AppendSegment.
const (
	FIN = 0x01
	SYN = 0x02
	RST = 0x04
	ACK = 0x10
)

// AppendSegment appends a frame to dst that carries a TCP segment: Ethernet,
// IPv4 or IPv6 as the addresses say, TCP, without checksums.
func AppendSegment(dst []byte, from, to netip.AddrPort, seq, ack uint32, flags byte, payload []byte) []byte {
	be := binary.BigEndian
	dst = append(dst, make([]byte, 12)...) // link addresses
	length := 20 + len(payload)
	if from.Addr().Is4() {
		dst = be.AppendUint16(dst, 0x0800)
		dst = append(dst, 0x45, 0)
		dst = be.AppendUint16(dst, uint16(20+length))
		dst = append(dst, 0, 0, 0, 0, 64, 6, 0, 0)
	} else {
		dst = be.AppendUint16(dst, 0x86dd)
		dst = append(dst, 0x60, 0, 0, 0)
		dst = be.AppendUint16(dst, uint16(length))
		dst = append(dst, 6, 64)
	}
	dst = append(dst, from.Addr().AsSlice()...)
	dst = append(dst, to.Addr().AsSlice()...)
	dst = be.AppendUint16(dst, from.Port())
	dst = be.AppendUint16(dst, to.Port())
	dst = be.AppendUint32(dst, seq)
	dst = be.AppendUint32(dst, ack)
	dst = append(dst, 5<<4, flags, 0xff, 0xff, 0, 0, 0, 0)
	return append(dst, payload...)
}

// Frame returns the next frame of the client with a payload. It is valid until
// the next call. A SYN takes one sequence number, as on the wire.
func (f *Flow) Frame(flags byte, payload []byte) []byte {
	f.frame = append(f.frame[:frameHeader], payload...)
	binary.BigEndian.PutUint16(f.frame[16:], uint16(40+len(payload)))
	tcp := f.frame[34:]
	binary.BigEndian.PutUint32(tcp[4:], f.seq)
	binary.BigEndian.PutUint32(tcp[8:], f.ack)
	tcp[13] = flags
	f.seq += uint32(len(payload))
	if flags&SYN != 0 {
		f.seq++
	}
	return f.frame
}

// Skip takes the next n bytes of the client as sent in frames that nobody
// looks at.
func (f *Flow) Skip(n uint32) { f.seq += n }

// Answered says that the server sent n bytes, which the next frame acknowledges.
func (f *Flow) Answered(n uint32) { f.ack += n }
