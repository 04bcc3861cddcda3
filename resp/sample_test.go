package resp

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func mget(n int, key string) string {
	args := []string{"MGET"}
	for i := range n {
		args = append(args, fmt.Sprintf("%s%03d", key, i))
	}
	return string(array(args...))
}

func TestFeedSampled(t *testing.T) {
	set := "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000\r\n"
	for _, test := range []struct {
		name, in string
		want     []string
	}{
		{"requests", get("a") + get("b"), []string{`GET "a"`, `GET "b"`}},
		{"a value goes on behind the packet", get("a") + set + "xx", []string{`GET "a"`, `SET "k" !cut`}},
		{"the header of the value ends the packet", set, []string{`SET "k" !cut`}},
		{"the header of the value is cut", set[:len(set)-3], []string{`SET "k" !cut`}},
		{"only the end of the line is missing", get("a") + strings.TrimSuffix(get("b"), "\r\n"), []string{`GET "a"`, `GET "b" !cut`}},
		{"the last key is not whole", get("a") + "*2\r\n$3\r\nGET\r\n$10\r\nxx", []string{`GET "a"`}},
		{"the last name is not whole", get("a") + "*2\r\n$3\r\nGE", []string{`GET "a"`}},
		{"the last header is not whole", get("a") + "*2", []string{`GET "a"`}},
		{"the last request is a star", get("a") + "*", []string{`GET "a"`}},
		{"some keys of the last request", "*4\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n$5\r\nxx", []string{`MGET "a" "b" !cut`}},
		{"keys that a later argument may take back", "*6\r\n$4\r\nSORT\r\n$1\r\na\r\n$5\r\nALPHA\r\n", nil},
		{"the number of keys says which they are", "*5\r\n$4\r\nEVAL\r\n$1\r\ns\r\n$1\r\n2\r\n$1\r\na\r\n", []string{`EVAL "a" !cut`}},
		{"the middle of a request", "\r\n" + get("false"), nil},
		{"the end of a value, then requests", "xxx\r\n" + get("false"), nil},
		{"text at the end of a value, then requests", get("false") + "\r\n" + get("false"), nil},
		{"garbage after a request", get("false") + "x\r\n" + get("false"), nil},
		{"a reply after a request", get("false") + "+OK\r\n", nil},
		{"an argument longer than it says", get("false") + "*2\r\n$3\r\nGET\r\n$1\r\nfalse\r\n", nil},
		{"no argument follows", get("false") + "*2\r\n$3\r\nGET\r\n+OK\r\n", nil},
		{"a number with a leading zero", get("false") + "*02\r\n$3\r\nGET\r\n$1\r\na\r\n", nil},
		{"QUIT", string(array("QUIT")) + get("false"), []string{"QUIT"}},
		{"TLS", "\x16\x03\x01\x02\x00\x01", nil},
		{"inline", "GET a\r\n", nil},
		{"nothing", "", nil},
	} {
		l := &collector{d: newDecoder()}
		for range 2 {
			l.got = nil
			l.d.FeedSampled([]byte(test.in))
			l.drain()
			if !slices.Equal(l.got, test.want) {
				t.Errorf("%s: %q, want %q", test.name, l.got, test.want)
			}
		}
		s := l.d.Stats()
		if s.Partials != 0 {
			t.Errorf("%s: %d partials left", test.name, s.Partials)
		}
		if s.Errors != [NumReasons]uint64{} || s.SampledPackets != 2 || s.SampledBytes != 2*uint64(len(test.in)) {
			t.Errorf("%s: counted as %+v", test.name, s)
		}
		if refused := test.want == nil && test.in[:min(1, len(test.in))] != "*"; refused && s.SampledRefused != 2 {
			t.Errorf("%s: not refused", test.name)
		}
	}
}

// TestFeedSampledSaysWhatIsUnseen: keys and bytes that a request announces
// behind its packet.
func TestFeedSampledSaysWhatIsUnseen(t *testing.T) {
	for _, test := range []struct {
		in           string
		keys         int
		unseen, more int64
	}{
		{mget(100, "k"), 100, 0, 0},
		{mget(100, "k")[:497], 48, 52, 0},
		{mget(1000, "key:")[:4000], 306, 694, 8},
		{"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\nxx", 1, 0, 1_000_000},
		{"*5\r\n$4\r\nMSET\r\n$1\r\na\r\n$50\r\nxx", 1, 1, 50},
	} {
		d := newDecoder()
		d.FeedSampled([]byte(test.in))
		var r Request
		keys := 0
		for d.Next(&r) {
			keys += len(r.Keys)
		}
		if keys != test.keys || r.Unseen != test.unseen || d.SampledBeyond() != test.more || r.Bytes != int64(len(test.in))+test.more {
			t.Errorf("%.20q: %d keys, %d unseen, %d bytes, %d to come; want %d, %d, %d, %d", test.in,
				keys, r.Unseen, r.Bytes, d.SampledBeyond(), test.keys, test.unseen, len(test.in)+int(test.more), test.more)
		}
	}
}

// TestFeedSampledFromAnyPlace: the same stream cut into packets anywhere; keys
// that are not in it never come out, and each at most once.
func TestFeedSampledFromAnyPlace(t *testing.T) {
	var stream []byte
	for i := range 40 {
		stream = append(stream, array("SET", fmt.Sprint("key:", i), strings.Repeat("v", i*7))...)
		stream = append(stream, array("MGET", fmt.Sprint("key:", i), "other")...)
	}
	for size := 1; size < 300; size++ {
		d := newDecoder()
		var r Request
		n := 0
		for p := 0; p < len(stream); p += size {
			d.FeedSampled(stream[p:min(p+size, len(stream))])
			for d.Next(&r) {
				n++
				for _, k := range r.Keys {
					if !bytes.HasPrefix(k.Bytes, []byte("key:")) && string(k.Bytes) != "other" {
						t.Fatalf("size %d: key %q", size, k.Bytes)
					}
				}
			}
		}
		if n > 80 {
			t.Fatalf("size %d: %d requests; 80 were sent", size, n)
		}
	}
}

func TestFeedSampledDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	packets := [][]byte{
		[]byte(get("a") + get("b") + mget(20, "key:")), []byte(mget(300, "key:")[:2000]),
		[]byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000\r\nxx"), []byte(get("a") + "*2\r\n$3\r\nGET\r\n$10\r\nxx"), []byte("xxxxx"),
	}
	d := newDecoder()
	var r Request
	feed := func() {
		for _, b := range packets {
			d.FeedSampled(b)
			for d.Next(&r) {
			}
		}
	}
	feed()
	if n := testing.AllocsPerRun(100, feed); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
