package capture

import "fmt"

// pcapFormat reads the records of a pcap file (draft-ietf-opsawg-pcap). All variants
// differ only in byte order, unit of the time stamp and record header length.
type pcapFormat struct {
	link   LinkType
	big    bool
	nsUnit int64 // nanoseconds in one unit of the fractional time
	header int   // length of a record header
}

// linkTypeMask cuts the frame check sequence length out of the link type word.
const linkTypeMask = 0x03ffffff

// openPcap reads the file header.
func (f *fileReader) openPcap(big bool) error {
	head, err := f.peek(24)
	if err != nil {
		return err
	}
	format := &pcapFormat{big: big, nsUnit: 1000, header: 16}
	switch u32(head, big) {
	case magicNano:
		format.nsUnit = 1
	case magicModified:
		format.header = 24
	}
	if major := u16(head[4:], big); major != 2 {
		return f.fail(ErrFormat, fmt.Sprintf("pcap version %d.%d", major, u16(head[6:], big)))
	}
	format.link = LinkType(u32(head[20:], big) & linkTypeMask)
	f.format = format
	f.take(24)
	return nil
}

// next reads one record. The snap length of the file header is not enforced:
// several writers exceed it, and maxRecord is the bound that protects.
func (c *pcapFormat) next(f *fileReader, p *Packet) error {
	f.record = f.offset()
	head, err := f.peek(c.header)
	if err != nil {
		return err
	}
	captured := u32(head[8:], c.big)
	if captured > maxRecord {
		return f.fail(ErrCorrupt, fmt.Sprintf("record of %d bytes, at most %d are possible", captured, maxRecord))
	}
	record, err := f.peek(c.header + int(captured))
	if err != nil {
		return err
	}
	p.T = int64(u32(record, c.big))*1e9 + int64(u32(record[4:], c.big))*c.nsUnit
	p.WireLen = max(int(u32(record[12:], c.big)), int(captured))
	p.Data = record[c.header:]
	p.Link = c.link
	f.take(len(record))
	return nil
}
