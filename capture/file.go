package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
)

const (
	// maxRecord bounds the captured length of one packet in a file. tcpdump's
	// default snap length is 256 KiB and Linux BIG TCP frames stop at 512 KiB;
	// a larger length is a damaged file and must not allocate.
	maxRecord = 1 << 20
	// oneFileBuffer is the read buffer of a single file: large enough that a
	// system call is shared by thousands of packets, small enough for the L2
	// cache. It doubles when a record does not fit and so many bytes really
	// arrived, to 2 MiB at most.
	oneFileBuffer = 256 << 10
	// manyFilesBuffer is the same when several files are merged; 256 files
	// then take 16 MiB.
	manyFilesBuffer = 64 << 10
)

// format reads the records of one file format. Its next fills p with a packet
// whose bytes lie in the buffer of f.
type format interface {
	next(f *fileReader, p *Packet) error
}

// fileReader reads one file through its own buffer and returns packets as
// slices of that buffer: each byte is copied once, by the read system call.
type fileReader struct {
	path   string
	in     io.Reader
	close  io.Closer
	format format

	buf    []byte
	lo, hi int   // unread bytes are buf[lo:hi]
	base   int64 // file offset of buf[0]
	record int64 // file offset of the record in hand, for errors
	skip   int64 // bytes behind the last packet that the next call passes over
	ended  error // what the last read returned, nil while there may be more

	stopped *atomic.Bool // set when the source was stopped, nil for a lone reader

	stats InterfaceStats
}

func newFileReader(path string, in io.Reader, bufferBytes int) *fileReader {
	f := &fileReader{path: path, in: in, buf: make([]byte, bufferBytes)}
	f.stats.Name = path
	return f
}

// openFile opens path, or wraps stdin for "-". size is 0 when unknown.
func openFile(path string, stdin io.Reader, bufferBytes int) (f *fileReader, size int64, err error) {
	if path == "-" {
		if stdin == nil {
			return nil, 0, errors.New("read -: no standard input")
		}
		return newFileReader(path, stdin, bufferBytes), 0, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", path, errors.Unwrap(err))
	}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	f = newFileReader(path, file, bufferBytes)
	f.close = file
	return f, size, nil
}

// next fills p with the next packet, or returns io.EOF at a clean end, or a
// *FileError. After an error it must not be called again.
func (f *fileReader) next(p *Packet) error {
	if f.format == nil {
		if err := f.detect(); err != nil {
			return err
		}
	}
	if f.skip > 0 {
		if err := f.discard(f.skip); err != nil {
			return err
		}
		f.skip = 0
	}
	if err := f.format.next(f, p); err != nil {
		return err
	}
	f.stats.Packets++
	f.stats.Bytes += uint64(p.WireLen)
	return nil
}

// offset is the position in the file of the first unread byte.
func (f *fileReader) offset() int64 { return f.base + int64(f.lo) }

// peek returns the next n bytes without consuming them; n is at most maxRecord
// and a header. It returns io.EOF when the file ends right here, and a
// FileError when it ends before n bytes.
func (f *fileReader) peek(n int) ([]byte, error) {
	if f.hi-f.lo < n {
		if err := f.fill(n); err != nil {
			return nil, err
		}
	}
	return f.buf[f.lo : f.lo+n : f.lo+n], nil
}

// fill reads until n bytes are in the buffer. The buffer doubles only when it
// is full of bytes that arrived, so a declared length alone allocates nothing.
func (f *fileReader) fill(n int) error {
	for f.hi-f.lo < n {
		if f.ended == nil && f.stopped != nil && f.stopped.Load() {
			f.ended = io.EOF
		}
		if f.ended != nil {
			return f.endError(n)
		}
		if f.lo > 0 {
			copy(f.buf, f.buf[f.lo:f.hi])
			f.base += int64(f.lo)
			f.hi -= f.lo
			f.lo = 0
		}
		if f.hi == len(f.buf) {
			bigger := make([]byte, 2*len(f.buf))
			copy(bigger, f.buf[:f.hi])
			f.buf = bigger
		}
		got, err := f.in.Read(f.buf[f.hi:])
		f.hi += got
		f.ended = err
	}
	return nil
}

// endError explains why n bytes cannot be had.
func (f *fileReader) endError(n int) error {
	have := f.hi - f.lo
	if !errors.Is(f.ended, io.EOF) && !errors.Is(f.ended, io.ErrUnexpectedEOF) {
		return f.fail(f.ended, "")
	}
	if have == 0 && f.record == f.offset() {
		return io.EOF
	}
	return f.fail(ErrTruncated, fmt.Sprintf("%d bytes wanted at byte %d, %d there", n, f.offset(), have))
}

// take consumes n bytes that peek has shown.
func (f *fileReader) take(n int) { f.lo += n }

// discard consumes n bytes that need not be looked at, however many.
func (f *fileReader) discard(n int64) error {
	for n > 0 {
		if f.lo == f.hi {
			if err := f.fill(1); err != nil {
				if err == io.EOF {
					err = f.fail(ErrTruncated, fmt.Sprintf("%d more bytes wanted", n))
				}
				return err
			}
		}
		step := min(n, int64(f.hi-f.lo))
		f.lo += int(step)
		n -= step
	}
	return nil
}

// fail returns a FileError about the record in hand.
func (f *fileReader) fail(reason error, detail string) error {
	return &FileError{Path: f.path, Offset: f.record, Err: reason, Detail: detail}
}

// Magic numbers of pcap files in the byte order of the writer.
const (
	magicMicro    = 0xa1b2c3d4
	magicNano     = 0xa1b23c4d
	magicModified = 0xa1b2cd34 // record headers are 8 bytes longer
	blockSection  = 0x0a0d0d0a // pcapng section header, the same in both orders
)

// detect reads the file header and chooses the format.
func (f *fileReader) detect() error {
	head, err := f.peek(4)
	if err == io.EOF {
		return f.fail(ErrTruncated, "the file is empty")
	}
	if err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(head) == blockSection {
		f.format = new(pcapngFormat)
		return nil
	}
	for _, big := range []bool{false, true} {
		switch u32(head, big) {
		case magicMicro, magicNano, magicModified:
			return f.openPcap(big)
		}
	}
	detail := "unknown magic number"
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		detail = "gzip: decompress it first, for example with zcat FILE | hotsniff read -"
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		detail = "zstd: decompress it first, for example with zstdcat FILE | hotsniff read -"
	}
	return f.fail(ErrFormat, detail)
}

func u16(b []byte, big bool) uint16 {
	if big {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

func u32(b []byte, big bool) uint32 {
	if big {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

func u64(b []byte, big bool) uint64 {
	if big {
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}
