package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// order writes numbers in either byte order.
type order struct{ binary.AppendByteOrder }

var orders = []order{{binary.LittleEndian}, {binary.BigEndian}}

func (o order) words(b []byte, words ...uint32) []byte {
	for _, w := range words {
		b = o.AppendUint32(b, w)
	}
	return b
}

// pcapHeader is a pcap file header; link may hold more than the link type.
func pcapHeader(o order, magic, link uint32) []byte {
	b := o.words(nil, magic)
	b = o.AppendUint16(b, 2)
	b = o.AppendUint16(b, 4)
	return o.words(b, 0, 0, 262144, link)
}

// block wraps a pcapng block body.
func block(o order, kind uint32, body []byte) []byte {
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	size := uint32(len(body) + 12)
	return o.words(append(o.words(nil, kind, size), body...), size)
}

func section(o order) []byte {
	b := o.words(nil, 0x1a2b3c4d)
	b = o.AppendUint16(b, 1)
	b = o.AppendUint16(b, 0)
	return block(o, blockSection, o.words(b, 0xffffffff, 0xffffffff))
}

func option(o order, code uint16, value ...byte) []byte {
	b := o.AppendUint16(nil, code)
	b = o.AppendUint16(b, uint16(len(value)))
	b = append(b, value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func describeInterface(o order, link uint16, snaplen uint32, options ...byte) []byte {
	b := o.AppendUint16(nil, link)
	b = o.AppendUint16(b, 0)
	return block(o, blockInterface, append(o.words(b, snaplen), options...))
}

func enhanced(o order, id uint32, ticks uint64, wire uint32, data string) []byte {
	b := o.words(nil, id, uint32(ticks>>32), uint32(ticks), uint32(len(data)), wire)
	return block(o, blockEnhanced, append(b, data...))
}

// readAll reads a file given as bytes and describes the packets, one a line.
func readAll(t testing.TB, file []byte) (string, error) {
	t.Helper()
	src, err := OpenFiles([]string{"-"}, bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var out []string
	var p Packet
	for {
		if err := src.Next(&p); err != nil {
			if err == io.EOF {
				err = nil
			} else if next := src.Next(&p); next != io.EOF {
				t.Errorf("after %v: %v, want io.EOF", err, next)
			}
			return strings.Join(out, " "), err
		}
		out = append(out, fmt.Sprintf("%d/%s/%d/%d", p.T, p.Data, p.WireLen, p.Link))
	}
}

func TestReadPcapVariants(t *testing.T) {
	for _, o := range orders {
		for _, tt := range []struct {
			magic uint32
			unit  int64
			extra int
		}{{magicMicro, 1000, 0}, {magicNano, 1, 0}, {magicModified, 1000, 8}} {
			file := pcapHeader(o, tt.magic, 276)
			file = append(o.words(file, 10, 123456, 3, 60), make([]byte, tt.extra)...)
			file = append(file, "abc"...)
			file = append(o.words(file, 11, 0, 0, 0), make([]byte, tt.extra)...)
			got, err := readAll(t, file)
			want := fmt.Sprintf("%d/abc/60/276 11000000000//0/276", 10e9+int64(123456)*tt.unit)
			if got != want || err != nil {
				t.Errorf("%v %x:\n got  %s, %v\n want %s", o, tt.magic, got, err, want)
			}
		}
	}
}

func TestReadPcapLinkTypeWithChecksumLength(t *testing.T) {
	file := append(orders[0].words(pcapHeader(orders[0], magicMicro, 1|1<<26|4<<28), 1, 0, 1, 1), 'x')
	if got, err := readAll(t, file); got != "1000000000/x/1/1" || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestReadPcapng(t *testing.T) {
	for _, o := range orders {
		other := orders[0]
		if o == other {
			other = orders[1]
		}
		file := section(o)
		file = append(file, describeInterface(o, 1, 0, append(option(o, 2, []byte("eth0")...), option(o, 0)...)...)...)
		file = append(file, describeInterface(o, 276, 0, option(o, 9, 9)...)...)
		file = append(file, describeInterface(o, 113, 0, option(o, 9, 0x80|10)...)...)
		file = append(file, describeInterface(o, 101, 2, append(option(o, 9, 12), option(o, 14, o.AppendUint64(nil, 100)...)...)...)...)
		file = append(file, block(o, 0x0bad, []byte("an unknown block"))...)
		file = append(file, enhanced(o, 0, 1_000_001, 60, "a")...)
		file = append(file, enhanced(o, 1, 5_000_000_007, 60, "bb")...)
		file = append(file, enhanced(o, 2, 3*1024+512, 60, "ccc")...)
		file = append(file, enhanced(o, 3, 7_000_000_000_123, 60, "dddd")...)
		old := o.AppendUint16(nil, 1)
		old = o.AppendUint16(old, 9)
		old = o.words(old, 1, 0x2a05f207, 5, 61)
		file = append(file, block(o, blockPacket, append(old, "eeeee"...))...)
		stats := o.words(nil, 0, 0, 0)
		stats = append(stats, option(o, 5, o.AppendUint64(nil, 40)...)...)
		stats = append(stats, option(o, 7, o.AppendUint64(nil, 2)...)...)
		file = append(file, block(o, blockStatistics, stats)...)
		// Another section of the other byte order; interface numbers begin again.
		file = append(file, section(other)...)
		file = append(file, describeInterface(other, 101, 4)...)
		file = append(file, block(other, blockSimple, append(other.words(nil, 6), "ffff"...))...)
		file = append(file, enhanced(other, 0, 9_000_000, 60, "g")...)

		got, err := readAll(t, file)
		want := "1000001000/a/60/1 5000000007/bb/60/276 3500000000/ccc/60/113 107000000000/dddd/60/101 " +
			"5000000007/eeeee/61/276 5000000007/ffff/6/101 9000000000/g/60/101"
		if got != want || err != nil {
			t.Errorf("got  %s, %v\nwant %s", got, err, want)
		}
		src, _ := OpenFiles([]string{"-"}, bytes.NewReader(file))
		var p Packet
		for src.Next(&p) == nil {
		}
		if s := src.Stats(); s.Interfaces[0].Dropped != 2 || s.Interfaces[0].InterfaceDropped != 40 ||
			s.Interfaces[0].Packets != 7 || s.FileBytes != int64(len(file)) || s.FileSize != 0 {
			t.Errorf("stats %+v", s)
		}
	}
}

// damaged are files that cannot be read to their end; they also seed the fuzz
// target.
func damaged() []struct {
	name   string
	file   []byte
	reason error
	offset int64
	before int // packets delivered
} {
	o := orders[0]
	pcapFile := append(o.words(pcapHeader(o, magicMicro, 1), 1, 0, 4, 60), "abcd"...)
	ng := append(append(section(o), describeInterface(o, 1, 0)...), enhanced(o, 0, 1, 60, "abcd")...)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	old := pcapHeader(o, magicMicro, 1)
	old[4] = 1
	newer := section(o)
	newer[12] = 2
	noMagic := section(o)
	noMagic[8] = 0
	return []struct {
		name   string
		file   []byte
		reason error
		offset int64
		before int
	}{
		{"empty", nil, ErrTruncated, 0, 0},
		{"two bytes", []byte{0xd4, 0xc3}, ErrTruncated, 0, 0},
		{"text", []byte("this is no capture"), ErrFormat, 0, 0},
		{"gzip", []byte{0x1f, 0x8b, 8, 0, 0, 0}, ErrFormat, 0, 0},
		{"zstd", []byte{0x28, 0xb5, 0x2f, 0xfd, 0}, ErrFormat, 0, 0},
		{"half a file header", pcapFile[:20], ErrTruncated, 0, 0},
		{"pcap version 1", old, ErrFormat, 0, 0},
		{"half a record header", join(pcapFile, make([]byte, 7)), ErrTruncated, 44, 1},
		{"half a record", pcapFile[:42], ErrTruncated, 24, 0},
		{"a record of 4 GiB", join(pcapFile, o.words(nil, 1, 0, 0xffffffff, 0xffffffff)), ErrCorrupt, 44, 1},
		{"a record of 1 GiB", join(pcapFile, o.words(nil, 1, 0, 1<<30, 1<<30)), ErrCorrupt, 44, 1},
		{"the largest record, not there", join(pcapFile, o.words(nil, 1, 0, maxRecord, maxRecord)), ErrTruncated, 44, 1},
		{"half a section header", ng[:20], ErrTruncated, 0, 0},
		{"section without a byte order mark", noMagic, ErrCorrupt, 0, 0},
		{"pcapng version 2", newer, ErrFormat, 0, 0},
		{"section header of 16 bytes", join(o.words(nil, blockSection, 16, 0x1a2b3c4d, 16), make([]byte, 16)), ErrCorrupt, 0, 0},
		{"block of 8 bytes", join(ng, o.words(nil, 0x0bad, 8)), ErrCorrupt, 84, 1},
		{"block of 4 GiB", join(ng, o.words(nil, 0x0bad, 0xfffffffc, 0, 0)), ErrTruncated, 84, 1},
		{"block of an odd length", join(ng, o.words(nil, 0x0bad, 13, 0, 0)), ErrCorrupt, 84, 1},
		{"packet larger than its block", join(ng, o.words(nil, blockEnhanced, 36, 0, 0, 0, 100, 100, 0, 36)), ErrCorrupt, 84, 1},
		{"packet of 1 GiB", join(ng, o.words(nil, blockEnhanced, 0x60000000, 0, 0, 0, 1<<30, 1<<30)), ErrCorrupt, 84, 1},
		{"packet of an interface that is not there", join(ng, enhanced(o, 7, 0, 60, "x")), ErrCorrupt, 84, 1},
		{"packet before any interface", join(section(o), enhanced(o, 0, 0, 60, "x")), ErrCorrupt, 28, 0},
		{"simple packet before any interface", join(section(o), block(o, blockSimple, o.words(nil, 4, 0))), ErrCorrupt, 28, 0},
		{"simple packet of 1 GiB", join(section(o), describeInterface(o, 1, 0), o.words(nil, blockSimple, 0x60000000, 1<<30)), ErrCorrupt, 48, 0},
		{"interface description of 12 bytes", join(section(o), o.words(nil, blockInterface, 12, 12)), ErrCorrupt, 28, 0},
		{"interface statistics of 12 bytes", join(ng, o.words(nil, blockStatistics, 12, 12)), ErrCorrupt, 84, 1},
		{"too many interfaces", join(section(o), bytes.Repeat(describeInterface(o, 1, 0), maxInterfaces+1)), ErrCorrupt, 28 + 20*maxInterfaces, 0},
		{"half a packet block", ng[:70], ErrTruncated, 48, 0},
		{"packet block without its end", ng[:82], ErrTruncated, 48, 1},
	}
}

func TestReadDamagedFiles(t *testing.T) {
	for _, tt := range damaged() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := readAll(t, tt.file)
		runtime.ReadMemStats(&after)
		var fe *FileError
		if !errors.As(err, &fe) || !errors.Is(err, tt.reason) || fe.Offset != tt.offset || fe.Path != "-" {
			t.Errorf("%s: %v, want %v at byte %d", tt.name, err, tt.reason, tt.offset)
		}
		if n := len(strings.Fields(got)); n != tt.before {
			t.Errorf("%s: %d packets before the error, want %d", tt.name, n, tt.before)
		}
		if grew := after.TotalAlloc - before.TotalAlloc; grew > 4<<20 {
			t.Errorf("%s: %d bytes allocated", tt.name, grew)
		}
	}
}

// TestReadCutAnywhere cuts a file at every byte: what lies before is delivered,
// and the cut is told unless it falls between records.
func TestReadCutAnywhere(t *testing.T) {
	o := orders[1]
	pcapFile := pcapHeader(o, magicNano, 1)
	ng := append(section(o), describeInterface(o, 1, 0)...)
	pcapEnds, ngEnds := map[int]int{len(pcapFile): 0}, map[int]int{len(section(o)): 0, len(ng): 0}
	for i := range 4 {
		data := strings.Repeat("x", i*3)
		pcapFile = append(o.words(pcapFile, uint32(i), 0, uint32(len(data)), 60), data...)
		pcapEnds[len(pcapFile)] = i + 1
		ng = append(ng, enhanced(o, 0, uint64(i), 60, data)...)
		ngEnds[len(ng)] = i + 1
	}
	for name, f := range map[string]struct {
		file []byte
		ends map[int]int
	}{"pcap": {pcapFile, pcapEnds}, "pcapng": {ng, ngEnds}} {
		for n := 1; n <= len(f.file); n++ {
			got, err := readAll(t, f.file[:n])
			want, whole := f.ends[n]
			if whole && (err != nil || len(strings.Fields(got)) != want) {
				t.Errorf("%s cut at %d: %q, %v, want %d packets", name, n, got, err, want)
			}
			if !whole && !errors.Is(err, ErrTruncated) {
				t.Errorf("%s cut at %d: %v, want truncated", name, n, err)
			}
		}
	}
}

// TestReadLargeRecords reads records around the sizes of the buffers through a
// reader that hands bytes out in small parts.
func TestReadLargeRecords(t *testing.T) {
	o := orders[0]
	file := pcapHeader(o, magicMicro, 1)
	sizes := []int{0, 1, manyFilesBuffer - 16, manyFilesBuffer, oneFileBuffer, maxRecord - 1, maxRecord, 5}
	for i, size := range sizes {
		file = append(o.words(file, uint32(i), 0, uint32(size), uint32(size)), bytes.Repeat([]byte{byte(i)}, size)...)
	}
	for _, step := range []int{1000, 70_001, 1 << 22} {
		src, _ := OpenFiles([]string{"-"}, &slowReader{file, step})
		var p Packet
		for i, size := range sizes {
			if err := src.Next(&p); err != nil {
				t.Fatal(err)
			}
			if len(p.Data) != size || size > 0 && (p.Data[0] != byte(i) || p.Data[size-1] != byte(i)) {
				t.Errorf("record %d: %d bytes, want %d", i, len(p.Data), size)
			}
		}
		if err := src.Next(&p); err != io.EOF {
			t.Error(err)
		}
	}
}

type slowReader struct {
	b    []byte
	step int
}

func (r *slowReader) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b[:min(r.step, len(r.b))])
	r.b = r.b[n:]
	return n, nil
}

type failingReader struct{ after io.Reader }

func (r failingReader) Read(p []byte) (int, error) {
	n, err := r.after.Read(p)
	if err == io.EOF {
		err = os.ErrDeadlineExceeded
	}
	return n, err
}

func TestReadTellsSystemErrors(t *testing.T) {
	file := append(orders[0].words(pcapHeader(orders[0], magicMicro, 1), 1, 0, 1, 1), 'x')
	src, _ := OpenFiles([]string{"-"}, failingReader{bytes.NewReader(file)})
	var p Packet
	if err := src.Next(&p); err != nil {
		t.Fatal(err)
	}
	if err := src.Next(&p); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func writeFile(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadMergesByTime(t *testing.T) {
	o := orders[0]
	record := func(file []byte, t uint32, data string) []byte {
		return append(o.words(file, t, 0, uint32(len(data)), uint32(len(data))), data...)
	}
	a, b, c := pcapHeader(o, magicMicro, 1), pcapHeader(o, magicMicro, 101), pcapHeader(o, magicMicro, 1)
	for i := range 10 {
		a = record(a, uint32(2*i), fmt.Sprintf("a%d", 2*i))
		b = record(b, uint32(3*i), fmt.Sprintf("b%d", 3*i))
	}
	c = record(c, 7, "c7")
	paths := []string{writeFile(t, "a.pcap", a), writeFile(t, "b.pcap", b[:len(b)-1]), writeFile(t, "c.pcap", c), "-"}
	src, err := OpenFiles(paths, strings.NewReader("no capture"))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var got []string
	var failed []string
	var p Packet
	last := int64(-1)
	for {
		err := src.Next(&p)
		if err == io.EOF {
			break
		}
		var fe *FileError
		if errors.As(err, &fe) {
			failed = append(failed, fe.Path)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.T < last {
			t.Errorf("time runs back to %d", p.T)
		}
		last = p.T
		got = append(got, string(p.Data))
		if name := string(p.Data[:1]); !strings.HasSuffix(paths[p.Interface], name+".pcap") {
			t.Errorf("packet %s of interface %d", p.Data, p.Interface)
		}
	}
	want := "a0 b0 a2 b3 a4 a6 b6 c7 a8 b9 a10 a12 b12 a14 b15 a16 a18 b18 b21 b24"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
	if len(failed) != 2 || failed[0] != "-" || failed[1] != paths[1] {
		t.Errorf("failed files %v", failed)
	}
	s := src.Stats()
	if len(s.Interfaces) != 4 || s.Interfaces[0].Name != paths[0] || s.Interfaces[1].Packets != 9 || s.Interfaces[2].Bytes != 2 {
		t.Errorf("stats %+v", s)
	}
}

func TestReadStats(t *testing.T) {
	o := orders[0]
	file := append(o.words(pcapHeader(o, magicMicro, 1), 1, 0, 2, 60), "ab"...)
	path := writeFile(t, "x.pcap", file)
	src, err := OpenFiles([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var p Packet
	if err := src.Next(&p); err != nil {
		t.Fatal(err)
	}
	s := src.Stats()
	if s.FileSize != int64(len(file)) || s.FileBytes != int64(len(file)) || s.Interfaces[0] != (InterfaceStats{Name: path, Packets: 1, Bytes: 60}) {
		t.Errorf("stats %+v", s)
	}
	src.Stop()
	src.Close()
	src.Close()
	if err := src.Next(&p); err != io.EOF {
		t.Errorf("Next after Close: %v", err)
	}
	if again := src.Stats(); again.Interfaces[0] != s.Interfaces[0] {
		t.Errorf("stats after Close: %+v", again)
	}
}

func TestReadStopsAtOnceWhenClosed(t *testing.T) {
	file := benchFile(100, 1, false)
	for _, paths := range [][]string{{"-"}, {"-", writeFile(t, "x.pcap", file)}} {
		src, err := OpenFiles(paths, bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		var p Packet
		if err := src.Next(&p); err != nil {
			t.Fatal(err)
		}
		src.Close()
		if err := src.Next(&p); err != io.EOF {
			t.Errorf("%d files: Next after Close: %v", len(paths), err)
		}
	}
}

func TestOpenFilesErrors(t *testing.T) {
	if _, err := OpenFiles(nil, nil); err == nil {
		t.Error("no files: no error")
	}
	if _, err := OpenFiles([]string{"-"}, nil); err == nil {
		t.Error("no standard input: no error")
	}
	if _, err := OpenFiles(make([]string, MaxFiles+1), nil); err == nil {
		t.Error("too many files: no error")
	}
	path := filepath.Join(t.TempDir(), "none.pcap")
	_, err := OpenFiles([]string{path}, nil)
	if want := "read " + path + ": no such file or directory"; !errors.Is(err, os.ErrNotExist) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	src, err := OpenFiles([]string{t.TempDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var fe *FileError
	if err := src.Next(new(Packet)); !errors.As(err, &fe) {
		t.Errorf("a directory: %v", err)
	}
}

func TestReadDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	o := orders[0]
	file := pcapHeader(o, magicMicro, 1)
	ng := append(section(o), describeInterface(o, 1, 0)...)
	for range 5000 {
		file = append(o.words(file, 1, 0, 4, 60), "abcd"...)
		ng = append(ng, enhanced(o, 0, 1, 60, "abcd")...)
	}
	for name, f := range map[string][]byte{"pcap": file, "pcapng": ng} {
		src, _ := OpenFiles([]string{"-"}, bytes.NewReader(f))
		var p Packet
		src.Next(&p)
		if n := testing.AllocsPerRun(4000, func() { src.Next(&p) }); n != 0 {
			t.Errorf("%s: %v allocations a packet", name, n)
		}
	}
}

func FuzzFile(f *testing.F) {
	for _, tt := range damaged() {
		if len(tt.file) < 1000 {
			f.Add(tt.file)
		}
	}
	for _, o := range orders {
		file := append(section(o), describeInterface(o, 1, 0, option(o, 9, 0xff)...)...)
		file = append(file, enhanced(o, 0, 1, 60, "abcd")...)
		file = append(file, block(o, blockSimple, append(o.words(nil, 6), "ffff"...))...)
		f.Add(file)
		f.Add(append(o.words(pcapHeader(o, magicNano, 113), 1, 0, 2, 2), "ab"...))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		src, err := OpenFiles([]string{"-"}, bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		var p Packet
		var s Segment
		packets, captured := 0, 0
		for {
			err := src.Next(&p)
			if err != nil {
				var fe *FileError
				if err != io.EOF && (!errors.As(err, &fe) || fe.Offset > int64(len(file))) {
					t.Fatalf("error %v", err)
				}
				break
			}
			packets++
			captured += len(p.Data)
			if p.WireLen < len(p.Data) {
				t.Fatalf("%d bytes of %d", len(p.Data), p.WireLen)
			}
			Decode(&p, &s)
		}
		if captured > len(file) || packets > len(file)/16 {
			t.Fatalf("%d packets with %d bytes out of %d", packets, captured, len(file))
		}
		if err := src.Next(&p); err != io.EOF {
			t.Fatalf("after the end: %v", err)
		}
	})
}
