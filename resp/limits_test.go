package resp

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

func TestConnIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(Conn{}); n > 24 {
		t.Errorf("Conn has %d bytes, want at most 24", n)
	}
}

// heapGrowth returns by how much the live heap grew during f.
func heapGrowth(f func()) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// TestHalfOpenConnections leaves very many connections in the middle of a
// request, in every place where something must be kept.
func TestHalfOpenConnections(t *testing.T) {
	for _, test := range []struct {
		name string
		data []byte
	}{
		{"in a header", []byte("*2\r\n$3\r\nGET\r\n$1")},
		{"in a key", []byte("*2\r\n$3\r\nGET\r\n$2000\r\n" + strings.Repeat("k", 1500))},
		{"in a value", []byte("*3\r\n$3\r\nSET\r\n$300\r\n" + strings.Repeat("k", 300) + "\r\n$536870912\r\nvvv")},
		{"in a line", []byte("GET " + strings.Repeat("k", 3000))},
		{"among many keys", array(append([]string{"MGET"}, strings.Split(strings.Repeat("key:12345,", 60), ",")...)...)[:900]},
		{"at the start", []byte("PROXY TCP4 ")},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := NewDecoder(Config{})
			n := 200000
			if testing.Short() || raceEnabled {
				n = 40000
			}
			conns := make([]Conn, n)
			var r Request
			grown := heapGrowth(func() {
				for i := range conns {
					d.Open(&conns[i], true)
					d.Feed(&conns[i], test.data, true)
					for d.Next(&r) {
					}
				}
			})
			s := d.Stats()
			if s.Partials > maxPartials || s.PartialBytes > maxPartialBytes {
				t.Errorf("%d partials of %d bytes, want at most %d of %d", s.Partials, s.PartialBytes, maxPartials, maxPartialBytes)
			}
			if s.PartialsEvicted == 0 {
				t.Error("nothing was given up")
			}
			if limit := int64(2 * maxPartialBytes); grown > limit {
				t.Errorf("heap grew by %d bytes, want at most %d", grown, limit)
			}
			// The newest ones go on; those given up wait and do not invent.
			c := &conns[n-1]
			d.Close(c)
			first := &conns[0]
			d.Feed(first, []byte("\r\nk\r\n*2\r\n$3\r\nGET\r\n$5\r\nfalse\r\n"), false)
			for d.Next(&r) {
				t.Errorf("a connection that was given up yields %q", describe(d, &r, keyStrings(&r)))
			}
			d.Feed(first, array("GET", "k"), true)
			if !d.Next(&r) || len(r.Keys) != 1 {
				t.Error("a connection that was given up does not come back at a turn")
			}
			for d.Next(&r) {
			}
		})
	}
}

// TestHeldConnections keeps very many connections on trial.
func TestHeldConnections(t *testing.T) {
	d := NewDecoder(Config{})
	conns := make([]Conn, 50000)
	data := bytes.Repeat(array("GET", strings.Repeat("k", 100)), 40)
	var r Request
	grown := heapGrowth(func() {
		for i := range conns {
			d.Open(&conns[i], false)
			for range 3 {
				d.Feed(&conns[i], data, false)
				for d.Next(&r) {
					t.Fatal("handed out without proof")
				}
			}
		}
	})
	s := d.Stats()
	if s.Holds > maxHolds || s.HoldBytes > maxHoldBytes || s.HoldsEvicted == 0 {
		t.Errorf("%d holds of %d bytes, %d evicted", s.Holds, s.HoldBytes, s.HoldsEvicted)
	}
	if grown > 2*maxHoldBytes {
		t.Errorf("heap grew by %d bytes, want at most %d", grown, 2*maxHoldBytes)
	}
	for i := range conns {
		d.Close(&conns[i])
		for d.Next(&r) {
		}
	}
	if s := d.Stats(); s.Holds != 0 || s.HoldBytes > maxHoldBytes {
		t.Errorf("%d holds of %d bytes left", s.Holds, s.HoldBytes)
	}
}

// TestDeclaredSizes feeds headers that announce much and checks that nothing
// is allocated for it.
func TestDeclaredSizes(t *testing.T) {
	var digits [4096]byte
	for i := range digits {
		digits[i] = '9'
	}
	for _, test := range []struct{ name, head, again string }{
		{"512 MiB values", "", "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\nxx"},
		{"2^31-1 arguments", "*2147483647\r\n$3\r\nDEL\r\n", "$1\r\nk\r\n"},
		{"2^31-1 options", "*2147483647\r\n$4\r\nSORT\r\n$1\r\nk\r\n", "$5\r\nSTORE\r\n$9\r\nlonger:k:\r\n"},
		{"2^31-1 words", "*2147483647\r\n$5\r\nXREAD\r\n", "$5\r\nCOUNT\r\n$1\r\n1\r\n"},
		{"nested arrays", "", "*1\r\n*1\r\n*1\r\n"},
		{"an endless header", "*", string(digits[:])},
		{"an endless line", "GET ", string(digits[:])},
		{"a nested reply", "", "*3\r\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := NewDecoder(Config{})
			var c Conn
			var r Request
			d.Open(&c, true)
			grown := heapGrowth(func() {
				d.Feed(&c, []byte(test.head), true)
				for d.Next(&r) {
				}
				for range 20000 {
					d.Feed(&c, []byte(test.again), false)
					for d.Next(&r) {
					}
				}
			})
			if grown > 1<<20 {
				t.Errorf("heap grew by %d bytes", grown)
			}
			if b := d.Stats().PartialBytes; b > 256<<10 {
				t.Errorf("%d bytes kept", b)
			}
		})
	}
}

func TestHoleInAValueOf512MiB(t *testing.T) {
	d := NewDecoder(Config{})
	l := &collector{d: d}
	var c Conn
	d.Open(&c, true)
	d.Feed(&c, []byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\nxx"), true)
	l.drain()
	d.Skip(&c, 536870912)
	l.drain()
	d.Feed(&c, array("GET", "after"), false)
	l.drain()
	if want := fmt.Sprint([]string{`SET "k"`, `GET "after"`}); fmt.Sprint(l.got) != want {
		t.Errorf("%q, want %s", l.got, want)
	}
}

func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	value := strings.Repeat("v", 3000)
	for _, test := range []struct {
		name   string
		pieces [][]byte
	}{
		{"GET", [][]byte{array("GET", "k")}},
		{"pipeline", [][]byte{bytes.Repeat(array("SET", "k", "v"), 16)}},
		{"MGET", [][]byte{array("MGET", "a", "b", "c")}},
		{"EVAL", [][]byte{array("EVAL", "return 1", "1", "k")}},
		{"subcommand", [][]byte{array("XGROUP", "CREATE", "s", "g", "$")}},
		{"unknown", [][]byte{array("NOSUCH", "k")}},
		{"inline", [][]byte{[]byte("GET k\r\n")}},
		{"inline with quotes", [][]byte{[]byte("GET \"k\\x20\"\r\n")}},
		{"inline in two", [][]byte{[]byte("GET "), []byte("k\r\n")}},
		{"value in two", [][]byte{array("SET", "k", value)[:1400], array("SET", "k", value)[1400:]}},
		{"key in two", [][]byte{array("SET", value[:100], "v")[:60], array("SET", value[:100], "v")[60:]}},
	} {
		d := NewDecoder(Config{})
		var c Conn
		var r Request
		d.Open(&c, true)
		run := func() {
			for _, b := range test.pieces {
				d.Feed(&c, b, true)
				for d.Next(&r) {
				}
			}
		}
		run()
		if n := testing.AllocsPerRun(200, run); n != 0 {
			t.Errorf("%s: %v allocations", test.name, n)
		}
		if d.Stats().Requests < 200 {
			t.Errorf("%s: %d requests", test.name, d.Stats().Requests)
		}
	}
}
