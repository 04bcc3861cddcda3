package resp

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
)

// describe is a request in words; parts of one are put together by collect.
func describe(d *Decoder, r *Request, keys []string) string {
	s := d.CommandName(r.Command)
	for _, k := range keys {
		s += fmt.Sprintf(" %q", k)
	}
	if r.Flags&FlagWrongArity != 0 {
		s += " !arity"
	}
	if r.Flags&FlagInline != 0 {
		s += " !inline"
	}
	if r.Flags&FlagCut != 0 {
		s += " !cut"
	}
	return s
}

// collector puts the parts of requests together.
type collector struct {
	d    *Decoder
	keys []string
	got  []string
	full []string // with sizes
}

func (l *collector) add(r *Request) {
	for _, k := range r.Keys {
		s := string(k.Bytes)
		if k.Len != int64(len(k.Bytes)) {
			s += fmt.Sprintf("...%d", k.Len)
		}
		l.keys = append(l.keys, s)
	}
	if r.Flags&FlagContinued != 0 {
		return
	}
	l.got = append(l.got, describe(l.d, r, l.keys))
	l.full = append(l.full, fmt.Sprintf("%s bytes=%d args=%d", l.got[len(l.got)-1], r.Bytes, r.Args))
	l.keys = l.keys[:0]
}

func (l *collector) drain() {
	var r Request
	for l.d.Next(&r) {
		l.add(&r)
	}
}

func decodeSteps(b []byte, step int) (*collector, Stats) {
	l := &collector{d: newDecoder()}
	feedSteps(l.d, b, step, l.add)
	return l, *l.d.Stats()
}

var wireTests = []struct {
	name   string
	in     string
	want   []string
	reason Reason // what stops the connection
}{
	{"a request", "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", []string{`GET "k"`}, 0},
	{"lower case", "*2\r\n$3\r\ngEt\r\n$1\r\nk\r\n", []string{`GET "k"`}, 0},
	{"subcommand with wrong arity", "*4\r\n$6\r\nobject\r\n$8\r\nencoding\r\n$1\r\nk\r\n$1\r\nx\r\n", []string{"OBJECT ENCODING !arity"}, 0},
	{"object encoding", "*3\r\n$6\r\nobject\r\n$8\r\nencoding\r\n$1\r\nk\r\n", []string{`OBJECT ENCODING "k"`}, 0},
	{"container with unknown subcommand", "*2\r\n$6\r\nCLIENT\r\n$3\r\nfoo\r\n", []string{`CLIENT`}, 0},
	{"container alone", "*1\r\n$6\r\nCLIENT\r\n", []string{`CLIENT !arity`}, 0},
	{"unknown command", "*2\r\n$6\r\nNOSUCH\r\n$1\r\nk\r\n", []string{`OTHER`}, 0},
	{"empty command name", "*1\r\n$0\r\n\r\n", []string{`OTHER`}, 0},
	{"wrong arity", "*3\r\n$3\r\nGET\r\n$1\r\na\r\n$1\r\nb\r\n", []string{`GET !arity`}, 0},
	{"empty key", "*2\r\n$3\r\nGET\r\n$0\r\n\r\n", []string{`GET ""`}, 0},
	{"key with line ends", "*2\r\n$3\r\nGET\r\n$4\r\n\r\n\r\n\r\n", []string{`GET "\r\n\r\n"`}, 0},
	{"bytes after an argument are not looked at", "*2\r\n$3\r\nGETxx$1\r\nkyy*1\r\n$4\r\nPINGzz", []string{`GET "k"`, "PING"}, 0},
	{"byte after the carriage return is not looked at", "*2\rX$3\rYGET\r\n$1\rZk\r\n", []string{`GET "k"`}, 0},
	{"arrays of no arguments are skipped", "*0\r\n*-1\r\n*-10\r\n*-532450017895590926\r\n*1\r\n$4\r\nPING\r\n", []string{"PING"}, 0},
	{"blank lines are skipped", "\r\n\n  \r\n*1\r\n$4\r\nPING\r\n\r\n", []string{"PING"}, 0},
	{"a value of request text", "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$20\r\n*2\r\n$3\r\nGET\r\n$1\r\nx\r\n\r\n", []string{`SET "k"`}, 0},
	{"mixed forms", "GET a\r\n*2\r\n$3\r\nGET\r\n$1\r\nb\r\nGET c\n", []string{`GET "a" !inline`, `GET "b"`, `GET "c" !inline`}, 0},
	{"quotes", `SET 'q\'k' "v\x41"` + "\r\n" + `get "a b"` + "\n", []string{`SET "q'k" !inline`, `GET "a b" !inline`}, 0},
	{"escapes", `GET "\n\r\t\b\a\\\"\q\x0g"` + "\n", []string{`GET "\n\r\t\b\a\\\"qx0g" !inline`}, 0},
	{"quotes within a word", `GET a"b c"` + "\n", []string{`GET "ab c" !inline`}, 0},
	{"a closing quote ends a word", "MGET \"a\"\v\"b\" 'c'\fd\n", []string{`MGET "a" "b" "c" "d" !inline`}, 0},
	{"empty quotes", `GET ""` + "\n", []string{`GET "" !inline`}, 0},
	{"many spaces", "  EXISTS \t ik   ik2  \r\n", []string{`EXISTS "ik" "ik2" !inline`}, 0},
	{"open quote", "GET a\r\nSET \"x y\r\nGET never\r\n", []string{`GET "a" !inline`}, ReasonUnbalancedQuotes},
	{"text after a quote", `GET "a"b` + "\n*1\r\n$4\r\nPING\r\n", nil, ReasonUnbalancedQuotes},
	{"NUL before the end of line", "\x00\x00\r\nGET nul\r\n", nil, ReasonNulByte},
	{"count too large", "*2147483648\r\n$4\r\nPING\r\n", nil, ReasonArrayCount},
	{"count beyond 64 bits", "*10000000000000000000000000000\r\n", nil, ReasonArrayCount},
	{"count with plus", "*+1\r\n$4\r\nPING\r\n", nil, ReasonArrayCount},
	{"count with leading zero", "*01\r\n$4\r\nPING\r\n", nil, ReasonArrayCount},
	{"count with space", "* 1\r\n$4\r\nPING\r\n", nil, ReasonArrayCount},
	{"count missing", "*\r\n$4\r\nPING\r\n", nil, ReasonArrayCount},
	{"count -0", "*-0\r\n", nil, ReasonArrayCount},
	{"line feed alone does not end a header", "*1\n$4\nPING\n", nil, ReasonArrayCount},
	{"negative length", "*1\r\n$-1\r\n", nil, ReasonBulkLength},
	{"length with leading zero", "*1\r\n$04\r\nPING\r\n", nil, ReasonBulkLength},
	{"length above the limit", "*2\r\n$3\r\nGET\r\n$4\r\nok:1\r\n*2\r\n$3\r\nGET\r\n$536870913\r\n", []string{`GET "ok:1"`}, ReasonBulkLength},
	{"no bulk", "*1\r\n:1\r\n*1\r\n$4\r\nPING\r\n", nil, ReasonExpectedBulk},
	{"HTTP GET", "GET /index HTTP/1.1\r\nHost: a\r\nSET evil 1\r\n", []string{"GET !arity !inline"}, ReasonHTTP},
	{"HTTP POST", "POST /x HTTP/1.1\r\nSET evil 1\r\n", nil, ReasonHTTP},
	{"POST as an array", "*1\r\n$4\r\nPOST\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", nil, ReasonHTTP},
	{"Host: behind a request", "*1\r\n$4\r\nPING\r\n*1\r\n$5\r\nhost:\r\n", []string{"PING"}, ReasonHTTP},
	{"bytes after QUIT", "*1\r\n$4\r\nQUIT\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", []string{"QUIT"}, 0},
	{"unfinished", "*2\r\n$3\r\nGET\r\n$20\r\npartial", nil, 0},
	{"MULTI, SELECT, RESET", "*1\r\n$5\r\nMULTI\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n1\r\n*1\r\n$5\r\nRESET\r\n", []string{"MULTI", "SELECT", "RESET"}, 0},
	{"PROXY v1", "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", []string{`GET "k"`}, 0},
	{"PROXY v1 unknown", "PROXY UNKNOWN\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", []string{`GET "k"`}, 0},
	{"PROXY v2", "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c123456789012*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", []string{`GET "k"`}, 0},
	{"PROXY v2 before TLS", "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00\x16\x03\x01\x02\x00xxxx", nil, 0},
	{"PROXY as a command", "PROXY foo\r\nGET k\r\n", []string{"OTHER !inline", `GET "k" !inline`}, 0},
	{"TLS", "\x16\x03\x01\x00\xa5\x01\x00\x00*1\r\n$4\r\nPING\r\n", nil, 0},
	{"replication", "*3\r\n$5\r\nPSYNC\r\n$1\r\n?\r\n$2\r\n-1\r\n*3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$1\r\n0\r\n", []string{"PSYNC", "REPLCONF"}, 0},
}

// TestWire feeds each input whole, in pieces of one byte and of seven.
func TestWire(t *testing.T) {
	for _, test := range wireTests {
		t.Run(test.name, func(t *testing.T) {
			for _, step := range []int{1 << 20, 1, 7} {
				l, s := decodeSteps([]byte(test.in), step)
				if !slices.Equal(l.got, test.want) {
					t.Errorf("steps of %d: %q, want %q", step, l.got, test.want)
				}
				for why := range NumReasons {
					want := uint64(0)
					if why == test.reason && why != ReasonNone {
						want = 1
					}
					if s.Errors[why] != want {
						t.Errorf("steps of %d: %d errors %v, want %d", step, s.Errors[why], why, want)
					}
				}
			}
		})
	}
}

func TestWireCounters(t *testing.T) {
	_, s := decodeSteps([]byte("\x16\x03\x01\x00\xa5"), 1)
	if s.Encrypted != 1 || s.EncryptedBytes != 5 {
		t.Errorf("TLS: %d connections, %d bytes, want 1, 5", s.Encrypted, s.EncryptedBytes)
	}
	_, s = decodeSteps([]byte("PROXY TCP6 ::1 ::1 1 2\r\nPING\r\nFOO a\r\nGET\r\nGET k\r\n"), 3)
	if s.ProxyHeaders != 1 || s.Requests != 4 || s.Unknown != 1 || s.WrongArity != 1 || s.NoKey != 3 || s.Inline != 4 || s.Accesses != 1 {
		t.Errorf("counters: %+v", s)
	}
	_, s = decodeSteps([]byte("POST / HTTP/1.1\r\n\r\n"), 100)
	if s.HTTP != 1 || s.Requests != 0 || s.SkippedBytes != 2 {
		t.Errorf("HTTP: %d connections, %d requests, %d bytes skipped, want 1, 0, 2", s.HTTP, s.Requests, s.SkippedBytes)
	}
	_, s = decodeSteps(array("SYNC"), 100)
	if s.Replication != 1 {
		t.Errorf("%d replication connections, want 1", s.Replication)
	}
}

func TestBytesAndArguments(t *testing.T) {
	value := strings.Repeat("v", 100000)
	in := slices.Concat(array("SET", "k", value), []byte("\r\nGET k\r\n"), array("MGET", "a", "b"))
	for _, step := range []int{1 << 20, 1000, 1} {
		l, _ := decodeSteps(in, step)
		want := []string{
			fmt.Sprintf(`SET "k" bytes=%d args=3`, len(array("SET", "k", value))),
			`GET "k" !inline bytes=7 args=2`,
			fmt.Sprintf(`MGET "a" "b" bytes=%d args=3`, len(array("MGET", "a", "b"))),
		}
		if !slices.Equal(l.full, want) {
			t.Errorf("steps of %d: %q, want %q", step, l.full, want)
		}
	}
}

func TestLongKeysAreCut(t *testing.T) {
	key := strings.Repeat("k", 5000)
	for _, step := range []int{1 << 20, 700, 1} {
		l, _ := decodeSteps(array("GET", key), step)
		want := `GET "` + key[:MaxKeyBytes] + `...5000"`
		if len(l.got) != 1 || l.got[0] != want {
			t.Errorf("steps of %d: %.60q, want %.60q", step, l.got, want)
		}
	}
}

// TestManyKeys counts each key of large requests exactly, and each request once.
func TestManyKeys(t *testing.T) {
	const n = 100000
	args := []string{"MSET"}
	mget := []string{"MGET"}
	for i := range n {
		args = append(args, fmt.Sprint("key:", i), "v")
		mget = append(mget, fmt.Sprint("key:", i))
	}
	for _, in := range [][]byte{array(args...), array(mget...)} {
		for _, step := range []int{1 << 30, 1448, 100} {
			d := newDecoder()
			keys, requests := 0, 0
			feedSteps(d, in, step, func(r *Request) {
				for _, k := range r.Keys {
					if want := fmt.Sprint("key:", keys); string(k.Bytes) != want {
						t.Fatalf("key %q, want %q", k.Bytes, want)
					}
					keys++
				}
				if len(r.Keys) > maxBatch {
					t.Fatalf("%d keys at once", len(r.Keys))
				}
				if r.Flags&FlagContinued == 0 {
					requests++
					if r.Bytes != int64(len(in)) {
						t.Errorf("%d bytes, want %d", r.Bytes, len(in))
					}
				}
			})
			if keys != n || requests != 1 || d.Stats().Requests != 1 || d.Stats().Accesses != n || d.Stats().NoKey != 0 {
				t.Errorf("steps of %d: %d keys, %d requests, want %d, 1; %+v", step, keys, requests, n, *d.Stats())
			}
			if b := d.Stats().PartialBytes; b > 64<<10 {
				t.Errorf("steps of %d: %d bytes kept", step, b)
			}
		}
	}
}

// TestSplits decodes a long mix of requests of several connections with random
// splits, the connections taking turns.
func TestSplits(t *testing.T) {
	seed := rand.Int63()
	rng := rand.New(rand.NewSource(seed))
	const conns = 5
	var streams [conns][]byte
	var want [conns][]string
	lines := append(readTruth(t, "getkeys-truth.tsv"), readTruth(t, "getkeys-derived.tsv")...)
	for i := range streams {
		for range 300 {
			args := slices.Clone(lines[rng.Intn(len(lines))].args)
			if strings.EqualFold(args[0], "QUIT") {
				continue
			}
			if rng.Intn(4) == 0 {
				args = []string{"SET", fmt.Sprint("k", i), string(array("GET", "false"))}
			}
			streams[i] = append(streams[i], array(args...)...)
		}
		l, _ := decodeSteps(streams[i], 1<<30)
		want[i] = l.full
	}
	d := newDecoder()
	var c [conns]Conn
	var got [conns]collector
	for i := range c {
		d.Open(&c[i], true)
		got[i].d = d
	}
	for left := conns; left > 0; {
		i := rng.Intn(conns)
		if len(streams[i]) == 0 {
			continue
		}
		n := min(len(streams[i]), 1+rng.Intn(60))
		b := slices.Clone(streams[i][:n])
		d.Feed(&c[i], b, rng.Intn(2) == 0)
		got[i].drain()
		for k := range b {
			b[k] = '#' // it belongs to the caller again
		}
		if streams[i] = streams[i][n:]; len(streams[i]) == 0 {
			left--
		}
	}
	for i := range got {
		if !slices.Equal(got[i].full, want[i]) {
			for k := range want[i] {
				if k >= len(got[i].full) || got[i].full[k] != want[i][k] {
					t.Fatalf("seed %d, connection %d, request %d differs: want %q", seed, i, k, want[i][k])
				}
			}
			t.Fatalf("seed %d, connection %d: %d requests, want %d", seed, i, len(got[i].full), len(want[i]))
		}
	}
	if s := d.Stats(); s.Partials != 0 {
		t.Errorf("%d partials left", s.Partials)
	}
}

func FuzzDecoder(f *testing.F) {
	for _, test := range wireTests {
		f.Add([]byte(test.in), uint64(3))
	}
	for _, l := range readTruth(f, "getkeys-truth.tsv")[:40] {
		f.Add(slices.Concat(array(l.args...), array("GET", "k")), uint64(5))
	}
	f.Add(bytes.Repeat(array("MSET", "a", "1", "b", "2"), 50), uint64(9))
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		whole, ws := decodeSteps(in, 1<<30)
		rng := rand.New(rand.NewSource(int64(seed)))
		l := &collector{d: newDecoder()}
		var c, other Conn
		l.d.Open(&c, true)
		l.d.Open(&other, true)
		for rest := in; len(rest) > 0; {
			n := min(len(rest), 1+rng.Intn(1+rng.Intn(40)))
			b := slices.Clone(rest[:n])
			l.d.Feed(&c, b, rng.Intn(2) == 0)
			l.drain()
			for i := range b {
				b[i] = '#'
			}
			// Another connection in the middle of a request must not matter.
			keys := l.keys
			l.d.Feed(&other, []byte("*2\r\n$3\r\nGET\r\n$1")[rng.Intn(2):][:1], false)
			l.drain()
			l.keys = keys
			l.d.Open(&other, true)
			rest = rest[n:]
		}
		l.d.Close(&c)
		l.drain()
		if !slices.Equal(l.full, whole.full) {
			t.Fatalf("split: %q\nwhole: %q", l.full, whole.full)
		}
		s := *l.d.Stats()
		if s.SkippedBytes > ws.SkippedBytes+uint64(len(in)) || s.Partials > 2 {
			t.Fatalf("stats %+v", s)
		}
	})
}

// FuzzDamaged feeds bytes with holes and turns to connections of any kind: no
// panic, nothing kept at the end.
func FuzzDamaged(f *testing.F) {
	for _, test := range wireTests {
		f.Add([]byte(test.in), uint64(1))
		f.Add([]byte(strings.Repeat(test.in, 20)), uint64(2))
	}
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		rng := rand.New(rand.NewSource(int64(seed)))
		d := newDecoder()
		var conns [3]Conn
		var r Request
		drain := func() {
			for d.Next(&r) {
				if len(r.Keys) > maxBatch || r.Bytes < 0 || int(r.Command) >= d.NumCommands() {
					t.Fatalf("%+v", r)
				}
				for _, k := range r.Keys {
					if len(k.Bytes) > MaxKeyBytes || k.Len < int64(len(k.Bytes)) || k.Access == 0 {
						t.Fatalf("%+v", k)
					}
				}
			}
		}
		for i := range conns {
			d.Open(&conns[i], rng.Intn(2) == 0)
			drain()
		}
		for rest := in; len(rest) > 0; {
			c := &conns[rng.Intn(len(conns))]
			n := min(len(rest), 1+rng.Intn(80))
			switch rng.Intn(8) {
			case 0:
				d.Skip(c, int64(rng.Intn(100))-1)
			case 1:
				d.Reply(c, rest[:n], n+rng.Intn(2)*rng.Intn(50))
			case 2:
				d.Close(c)
				drain()
				d.Open(c, rng.Intn(2) == 0)
			case 3:
				d.Acked(c, uint32(rng.Intn(100)))
			case 4:
				d.FeedSampled(rest[:n])
			default:
				d.Feed(c, rest[:n], rng.Intn(2) == 0)
				rest = rest[n:]
			}
			drain()
		}
		for i := range conns {
			d.Close(&conns[i])
			drain()
		}
		if s := d.Stats(); s.Partials != 0 || s.Holds != 0 {
			t.Fatalf("%d partials and %d holds left", s.Partials, s.Holds)
		}
	})
}
