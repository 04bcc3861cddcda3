package testkit

import (
	"bufio"
	"encoding/binary"
	"io"
)

// PcapWriter writes a pcap file with nanoseconds, for tests and benchmarks.
type PcapWriter struct{ w *bufio.Writer }

// NewPcapWriter writes the file header for Ethernet frames.
func NewPcapWriter(w io.Writer) *PcapWriter {
	p := &PcapWriter{bufio.NewWriter(w)}
	var h [24]byte
	binary.LittleEndian.PutUint32(h[:], 0xA1B23C4D)
	binary.LittleEndian.PutUint16(h[4:], 2)
	binary.LittleEndian.PutUint16(h[6:], 4)
	binary.LittleEndian.PutUint32(h[16:], 262144)
	binary.LittleEndian.PutUint32(h[20:], 1)
	p.w.Write(h[:])
	return p
}

// Write writes one frame captured at t nanoseconds.
func (p *PcapWriter) Write(t int64, frame []byte) {
	var h [16]byte
	binary.LittleEndian.PutUint32(h[:], uint32(t/1e9))
	binary.LittleEndian.PutUint32(h[4:], uint32(t%1e9))
	binary.LittleEndian.PutUint32(h[8:], uint32(len(frame)))
	binary.LittleEndian.PutUint32(h[12:], uint32(len(frame)))
	p.w.Write(h[:])
	p.w.Write(frame)
}

// Flush ends the file; it returns the first error of all writes.
func (p *PcapWriter) Flush() error { return p.w.Flush() }
