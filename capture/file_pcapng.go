package capture

import (
	"fmt"
	"math/bits"
)

// pcapngFormat reads the blocks of a pcapng file (draft-ietf-opsawg-pcapng): several
// sections, each with its own byte order and interfaces, each interface with
// its own link type, snap length and time resolution.
type pcapngFormat struct {
	big        bool
	interfaces []ngInterface
	lastT      int64 // time of the last packet, for simple packets, which have none
}

// ngInterface is what an interface description block says.
type ngInterface struct {
	link     LinkType
	snaplen  uint32
	exponent uint8 // resolution 10^-n, or 2^-n when binary
	binary   bool
	offset   int64  // seconds to add
	dropped  uint64 // counters of the last statistics block
	ifDrop   uint64
}

const (
	// maxInterfaces bounds the interfaces of one section. Captures on all
	// devices of a large host have hundreds; each costs 40 bytes here.
	maxInterfaces = 4096
	// maxOptions bounds the options that are looked at in one block. Names,
	// filters and comments come first in practice, and none of them matters.
	maxOptions = 64 << 10
)

// Block types.
const (
	blockInterface  = 1
	blockPacket     = 2 // obsolete, still found in old files
	blockSimple     = 3
	blockStatistics = 5
	blockEnhanced   = 6
)

// next passes over blocks until one holds a packet.
func (c *pcapngFormat) next(f *fileReader, p *Packet) error {
	for {
		f.record = f.offset()
		head, err := f.peek(8)
		if err != nil {
			return err
		}
		kind := u32(head, c.big)
		if kind == blockSection {
			if err := c.section(f); err != nil {
				return err
			}
			continue
		}
		size := int64(u32(head[4:], c.big))
		if size < 12 || size%4 != 0 {
			return f.fail(ErrCorrupt, fmt.Sprintf("block of type %d and %d bytes", kind, size))
		}
		switch kind {
		case blockEnhanced, blockPacket:
			return c.packet(f, p, kind, size)
		case blockSimple:
			return c.simple(f, p, size)
		case blockInterface:
			err = c.describe(f, size)
		case blockStatistics:
			err = c.statistics(f, size)
		default:
			err = f.discard(size)
		}
		if err != nil {
			return err
		}
	}
}

// section reads a section header, which sets the byte order and forgets the
// interfaces of the section before.
func (c *pcapngFormat) section(f *fileReader) error {
	head, err := f.peek(28)
	if err != nil {
		return err
	}
	const byteOrderMagic = 0x1a2b3c4d
	c.big = u32(head[8:], true) == byteOrderMagic
	if !c.big && u32(head[8:], false) != byteOrderMagic {
		return f.fail(ErrCorrupt, "section header without a byte order mark")
	}
	size := int64(u32(head[4:], c.big))
	if size < 28 || size%4 != 0 {
		return f.fail(ErrCorrupt, fmt.Sprintf("section header of %d bytes", size))
	}
	if major := u16(head[12:], c.big); major != 1 {
		return f.fail(ErrFormat, fmt.Sprintf("pcapng version %d.%d", major, u16(head[14:], c.big)))
	}
	f.addDropped(c.interfaces)
	c.interfaces = c.interfaces[:0]
	return f.discard(size)
}

// packet reads an enhanced or an old packet block. They differ in the first
// word only: the old one has 16 bits of interface and 16 of drop count.
func (c *pcapngFormat) packet(f *fileReader, p *Packet, kind uint32, size int64) error {
	const header = 28
	head, err := f.peek(header)
	if err != nil {
		return err
	}
	id := u32(head[8:], c.big)
	if kind == blockPacket {
		id = uint32(u16(head[8:], c.big))
	}
	captured := u32(head[20:], c.big)
	if captured > maxRecord || int64(captured)+header+4 > size {
		return f.fail(ErrCorrupt, fmt.Sprintf("packet of %d bytes in a block of %d", captured, size))
	}
	if int64(id) >= int64(len(c.interfaces)) {
		return f.fail(ErrCorrupt, fmt.Sprintf("packet of interface %d, %d are described", id, len(c.interfaces)))
	}
	block, err := f.peek(header + int(captured))
	if err != nil {
		return err
	}
	from := &c.interfaces[id]
	c.lastT = from.nanoseconds(uint64(u32(block[12:], c.big))<<32 | uint64(u32(block[16:], c.big)))
	p.T = c.lastT
	p.WireLen = max(int(u32(block[24:], c.big)), int(captured))
	p.Data = block[header:]
	p.Link = from.link
	f.take(len(block))
	f.skip = size - int64(len(block))
	return nil
}

// simple reads a simple packet block: interface 0, no time, and the captured
// length only follows from the snap length and the block length.
func (c *pcapngFormat) simple(f *fileReader, p *Packet, size int64) error {
	const header = 12
	head, err := f.peek(header)
	if err != nil {
		return err
	}
	if len(c.interfaces) == 0 || size < header+4 {
		return f.fail(ErrCorrupt, "simple packet without an interface")
	}
	wire := int64(u32(head[8:], c.big))
	captured := min(wire, size-header-4)
	if snaplen := int64(c.interfaces[0].snaplen); snaplen > 0 {
		captured = min(captured, snaplen)
	}
	if captured > maxRecord {
		return f.fail(ErrCorrupt, fmt.Sprintf("packet of %d bytes, at most %d are possible", captured, maxRecord))
	}
	block, err := f.peek(header + int(captured))
	if err != nil {
		return err
	}
	p.T = c.lastT
	p.WireLen = int(wire)
	p.Data = block[header:]
	p.Link = c.interfaces[0].link
	f.take(len(block))
	f.skip = size - int64(len(block))
	return nil
}

// describe reads an interface description block.
func (c *pcapngFormat) describe(f *fileReader, size int64) error {
	if size < 20 {
		return f.fail(ErrCorrupt, fmt.Sprintf("interface description of %d bytes", size))
	}
	if len(c.interfaces) == maxInterfaces {
		return f.fail(ErrCorrupt, fmt.Sprintf("more than %d interfaces", maxInterfaces))
	}
	block, err := f.peek(int(min(size-4, maxOptions)))
	if err != nil {
		return err
	}
	it := ngInterface{
		link:     LinkType(u16(block[8:], c.big)),
		snaplen:  u32(block[12:], c.big),
		exponent: 6, // microseconds unless an option says otherwise
	}
	const optResolution, optOffset = 9, 14
	for code, value := range options(block[16:], c.big) {
		switch {
		case code == optResolution && len(value) >= 1:
			it.exponent, it.binary = value[0]&0x7f, value[0]&0x80 != 0
		case code == optOffset && len(value) >= 8:
			it.offset = int64(u64(value, c.big))
		}
	}
	c.interfaces = append(c.interfaces, it)
	return f.discard(size)
}

// statistics reads the drop counters of an interface statistics block.
func (c *pcapngFormat) statistics(f *fileReader, size int64) error {
	if size < 24 {
		return f.fail(ErrCorrupt, fmt.Sprintf("interface statistics of %d bytes", size))
	}
	block, err := f.peek(int(min(size-4, maxOptions)))
	if err != nil {
		return err
	}
	if id := int64(u32(block[8:], c.big)); id < int64(len(c.interfaces)) {
		it := &c.interfaces[id]
		const optDropInterface, optDropSystem = 5, 7
		for code, value := range options(block[20:], c.big) {
			switch {
			case code == optDropInterface && len(value) >= 8:
				it.ifDrop = u64(value, c.big)
			case code == optDropSystem && len(value) >= 8:
				it.dropped = u64(value, c.big)
			}
		}
	}
	return f.discard(size)
}

// options iterates over the options of a block until they end or stop making
// sense, which is no reason to give the file up.
func options(b []byte, big bool) func(yield func(code uint16, value []byte) bool) {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= 4 {
			code, size := u16(b, big), int(u16(b[2:], big))
			padded := 4 + (size+3)&^3
			if code == 0 || len(b) < 4+size || !yield(code, b[4:4+size]) || len(b) < padded {
				return
			}
			b = b[padded:]
		}
	}
}

// nanoseconds converts a time stamp of the interface. Absurd values wrap; they
// are as meaningless afterwards as before.
func (it *ngInterface) nanoseconds(ticks uint64) int64 {
	ns := ticks
	switch {
	case it.binary:
		hi, lo := bits.Mul64(ticks, 1e9)
		ns = lo>>it.exponent | hi<<(64-it.exponent)
		if it.exponent >= 64 {
			ns = hi >> (it.exponent - 64)
		}
	case it.exponent <= 9:
		ns *= pow10(9 - it.exponent)
	default:
		ns /= pow10(it.exponent - 9)
	}
	return int64(ns) + it.offset*1e9
}

// pow10 returns 10^n, or the largest power that fits.
func pow10(n uint8) uint64 {
	power := uint64(1)
	for range min(n, 19) {
		power *= 10
	}
	return power
}

// addDropped keeps the drop counters of a section that ends.
func (f *fileReader) addDropped(interfaces []ngInterface) {
	for i := range interfaces {
		f.stats.Dropped += interfaces[i].dropped
		f.stats.InterfaceDropped += interfaces[i].ifDrop
	}
}
