package resp

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// BenchmarkRequest decodes one segment again and again: the figure is the cost
// of all requests in it.
func BenchmarkRequest(b *testing.B) {
	value := strings.Repeat("v", 64)
	var keys []string
	for i := range 10 {
		keys = append(keys, fmt.Sprintf("key:%06d", i))
	}
	for _, bench := range []struct {
		name string
		data []byte
	}{
		{"Get", array("GET", "user:1000:profile")},
		{"Set64", array("SET", "user:1000:profile", value)},
		{"LowerCaseGet", array("get", "user:1000:profile")},
		{"Mget10", array(append([]string{"MGET"}, keys...)...)},
		{"Hset", array("HSET", "user:1000", "name", "x", "age", "30")},
		{"Eval", array("EVALSHA", strings.Repeat("a", 40), "1", "user:1000", "30")},
		{"XaddSub", array("XGROUP", "CREATE", "stream", "group", "$")},
		{"Pipeline16", bytes.Repeat(array("GET", "user:1000:profile"), 16)},
		{"Inline", []byte("GET user:1000:profile\r\n")},
	} {
		b.Run(bench.name, func(b *testing.B) {
			d := NewDecoder(Config{})
			var c Conn
			var r Request
			d.Open(&c, true)
			b.SetBytes(int64(len(bench.data)))
			b.ReportAllocs()
			for b.Loop() {
				d.Feed(&c, bench.data, true)
				for d.Next(&r) {
				}
			}
		})
	}
}

// BenchmarkSplit decodes a SET whose value comes in a second segment.
func BenchmarkSplit(b *testing.B) {
	data := array("SET", "user:1000:profile", strings.Repeat("v", 2000))
	d := NewDecoder(Config{})
	var c Conn
	var r Request
	d.Open(&c, true)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		d.Feed(&c, data[:1400], true)
		for d.Next(&r) {
		}
		d.Feed(&c, data[1400:], false)
		for d.Next(&r) {
		}
	}
}

// BenchmarkValue20MB passes a large value by, in segments of 1448 bytes.
func BenchmarkValue20MB(b *testing.B) {
	const size = 20 << 20
	head := []byte(fmt.Sprintf("*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$%d\r\n", size))
	segment := make([]byte, 1448)
	d := NewDecoder(Config{})
	var c Conn
	var r Request
	d.Open(&c, true)
	b.SetBytes(size)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		d.Feed(&c, head, true)
		for d.Next(&r) {
		}
		for rest := size + 2; rest > 0; rest -= len(segment) {
			d.Feed(&c, segment[:min(rest, len(segment))], false)
			for d.Next(&r) {
				n++
			}
		}
	}
	if n != b.N {
		b.Fatalf("%d requests, want %d", n, b.N)
	}
}
