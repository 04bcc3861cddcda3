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

// TCP flags for Frame.
const (
	SYN = 0x02
	ACK = 0x10
)

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

// Answered says that the server sent n bytes, which the next frame acknowledges.
func (f *Flow) Answered(n uint32) { f.ack += n }
