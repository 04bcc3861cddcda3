package resp

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// script drives one connection: a line is an event, "C" client bytes, "T"
// client bytes that open a turn, "S" server bytes, "H" a hole, "A" bytes that
// the next segment acknowledges, "." the end.
type event struct {
	kind byte
	data string
	n    int64
}

func client(s string) event   { return event{kind: 'C', data: s} }
func turn(s string) event     { return event{kind: 'T', data: s} }
func server(s string) event   { return event{kind: 'S', data: s} }
func hole(n int64) event      { return event{kind: 'H', n: n} }
func acked(n int64) event     { return event{kind: 'A', n: n} }
func lostReply(n int64) event { return event{kind: 'L', n: n} }

var end = event{kind: '.'}

func play(syn bool, events ...event) (*collector, Stats) {
	l := &collector{d: newDecoder()}
	var c Conn
	l.d.Open(&c, syn)
	for _, e := range events {
		switch e.kind {
		case 'C', 'T':
			b := []byte(e.data)
			l.d.Feed(&c, b, e.kind == 'T')
			l.drain()
			clear(b)
		case 'S':
			l.d.Reply(&c, []byte(e.data), len(e.data))
		case 'L':
			l.d.Reply(&c, nil, int(e.n))
		case 'H':
			l.d.Skip(&c, e.n)
		case 'A':
			l.d.Acked(&c, uint32(e.n))
		case '.':
			l.d.Close(&c)
		}
		l.drain()
	}
	return l, *l.d.Stats()
}

func get(key string) string { return string(array("GET", key)) }

// false10 is a piece of a value: ten requests that nobody made.
var false10 = strings.Repeat(get("false"), 10)

var resyncTests = []struct {
	name   string
	syn    bool
	events []event
	want   []string
}{
	{"one turn with a reply, then the end", false,
		[]event{client(get("a")), server("$-1\r\n"), end}, []string{`GET "a"`}},
	{"one turn without any reply captured, then the end", false,
		[]event{client(get("a")), end}, []string{`GET "a"`}},
	{"a turn is handed out when the next begins", false,
		[]event{client(get("a")), server("$1\r\nx\r\n"), turn(get("b"))}, []string{`GET "a"`, `GET "b"`}},
	{"an error is a reply", false,
		[]event{client(get("a")), server("-NOAUTH Authentication required.\r\n"), end}, []string{`GET "a"`}},
	{"a pipeline and its replies", false,
		[]event{client(get("a") + get("b")), server("$1\r\nx\r\n:1\r\n"), turn(get("c"))}, []string{`GET "a"`, `GET "b"`, `GET "c"`}},
	{"four requests answered are enough before the turn ends", false,
		[]event{client(strings.Repeat(get("a"), 4)), server("+a\r\n+b\r\n+c\r\n+d\r\n"), client(get("b"))},
		[]string{`GET "a"`, `GET "a"`, `GET "a"`, `GET "a"`, `GET "b"`}},
	{"pushes and attributes are no replies", false,
		[]event{client(get("a")), server(">2\r\n+invalidate\r\n*1\r\n$1\r\na\r\n|1\r\n+ttl\r\n:1\r\n%1\r\n+a\r\n*2\r\n:1\r\n_\r\n"), end}, []string{`GET "a"`}},
	{"replies that hold the text of replies", false,
		[]event{client(get("a")), server("$10\r\n+OK\r\n+OK\r\n"), server("\r\n"), end}, []string{`GET "a"`}},
	{"a start inside a value, not at a request", false,
		[]event{client("lse:1\r\n" + false10), client(false10), server("+OK\r\n"), turn(get("a")), server("$-1\r\n"), end}, []string{`GET "a"`}},
	{"a start inside a value, at a request: too few replies", false,
		[]event{client(false10), server("$-1\r\n"), turn(false10), client(false10), server("$-1\r\n"),
			turn(get("a")), server("$-1\r\n"), turn(get("b")), server("$-1\r\n"), end}, []string{`GET "a"`, `GET "b"`}},
	{"the same without replies: too few bytes acknowledged", false,
		[]event{client(false10), acked(5), turn(false10), client(false10), acked(5), turn(get("a")), acked(5), turn(get("b"))},
		[]string{`GET "a"`, `GET "b"`}},
	{"too few replies at the end", false,
		[]event{client(false10), server("$-1\r\n"), end}, nil},
	{"without turns nothing begins later", false,
		[]event{client("xx" + false10), client(false10), client(false10), end}, nil},
	{"a value that ends within a segment after false requests", false,
		[]event{client(false10 + "rest of the value\r\n"), end}, nil},
	{"a turn that is no request", false,
		[]event{client("xx"), turn("yy"), turn("*2\r\n$3\r\nGET\r\n"), client("$1\r\nk\r\n"), server("$-1\r\n"), end}, []string{`GET "k"`}},
	{"an unknown command is no start", false,
		[]event{client("xx"), turn(string(array("NOSUCH", "k"))), turn(get("k")), end}, []string{`GET "k"`}},
	{"a wrong arity is no start", false,
		[]event{client("xx"), turn(string(array("GET", "k", "l"))), turn(get("k")), end}, []string{`GET "k"`}},
	{"a start in pieces", false,
		[]event{client("*2\r"), client("\n$3\r\nGE"), client("T\r\n$1\r\nk\r\n"), server("$-1\r\n"), end}, []string{`GET "k"`}},
	{"a start in pieces that is none", false,
		[]event{client("*2\r"), client("\n$3\r\nXYZ\r\n$1\r\nk\r\n"), server("$-1\r\n"), turn(get("k")), server("$-1\r\n"), end}, []string{`GET "k"`}},
	{"a start in lines of text", false,
		[]event{client("PING\r\n"), server("+PONG\r\n"), turn("GET k\r\n"), server("$-1\r\n"), end}, []string{"PING !inline", `GET "k" !inline`}},
	{"lines of text that are no commands", false,
		[]event{client("once upon\r\n"), server("+OK\r\n"), end}, nil},
	{"a turn among unknown replies", false,
		[]event{client(get("a")), server("$-1\r\n"), lostReply(100), turn(get("b")), server("$-1\r\n"), turn(get("c"))},
		[]string{`GET "a"`, `GET "b"`, `GET "c"`}},
	{"replies that are never known", false,
		[]event{client(get("a")), server("x\r\n"), turn(get("b")), server("x\r\n"), turn(get("c")), server("x\r\n"), turn(get("d"))},
		[]string{`GET "a"`, `GET "b"`, `GET "c"`, `GET "d"`}},
	{"a subscription does not count", false,
		[]event{client(string(array("SUBSCRIBE", "a", "b"))), server("*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n"), turn("*1\r\n$4\r\nPING\r\n"), server("*2\r\n$4\r\npong\r\n$0\r\n\r\n"), turn("*1\r\n$4\r\nPING\r\n")},
		[]string{"SUBSCRIBE", "PING", "PING"}},
	{"PROXY header where no start was seen", false,
		[]event{client("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n" + get("a")), end}, []string{`GET "a"`}},
	{"TLS where no start was seen", false,
		[]event{client("\x17\x03\x03\x00\x20" + get("a")), turn(get("b")), end}, nil},

	{"a hole in a value", true,
		[]event{client("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100\r\n1234567890"), hole(80), client("1234567890\r\n" + get("a"))}, []string{`SET "k"`, `GET "a"`}},
	{"a hole up to the end of the value", true,
		[]event{client("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100\r\n1234567890"), hole(92), client(get("a"))}, []string{`SET "k"`, `GET "a"`}},
	{"a hole beyond the value", true,
		[]event{client("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100\r\n1234567890"), hole(93), client(false10), client(false10), turn(get("a"))}, []string{`SET "k" !cut`, `GET "a"`}},
	{"a hole of unknown size", true,
		[]event{client("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100\r\n1234567890"), hole(-1), client(false10), turn(get("a"))}, []string{`SET "k" !cut`, `GET "a"`}},
	{"a hole between requests", true,
		[]event{client(get("a")), hole(10), client(get("false")), turn(get("b")), client(get("c"))}, []string{`GET "a"`, `GET "b"`, `GET "c"`}},
	{"a hole in a key", true,
		[]event{client("*2\r\n$3\r\nGET\r\n$10\r\nabc"), hole(4), client("def\r\n" + get("a"))}, []string{`GET "a"`}},
	{"a hole in the name", true,
		[]event{client("*2\r\n$6\r\nGET"), hole(3), client("\r\n$1\r\nk\r\n" + get("a"))}, []string{`GET "a"`}},
	{"a hole in a count", true,
		[]event{client("*5\r\n$4\r\nEVAL\r\n$1\r\ns\r\n$2\r\n"), hole(2), client("\r\n$1\r\na\r\n$1\r\nb\r\n" + get("a"))}, []string{`GET "a"`}},
	{"a hole before the last key", true,
		[]event{client("*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$"), hole(20), turn(get("a"))}, []string{`GET "a"`}},
	{"a hole after the last key", true,
		[]event{client("*4\r\n$4\r\nHSET\r\n$1\r\nh\r\n$"), hole(20), turn(get("a"))}, []string{`HSET "h" !cut`, `GET "a"`}},
	{"a hole in a header before the name", true,
		[]event{client("*2\r\n$"), hole(5), turn(get("a"))}, []string{`GET "a"`}},
	{"a hole in a line", true,
		[]event{client("GET a"), hole(5), client("\r\n" + get("false")), turn(get("a"))}, []string{`GET "a"`}},
	{"a hole in the first bytes", true,
		[]event{client("PRO"), hole(5), client(get("false")), turn(get("a"))}, []string{`GET "a"`}},
	{"after a hole a turn that is no request", true,
		[]event{client(get("a")), hole(10), turn("rest\r\n" + get("false")), turn(get("b"))}, []string{`GET "a"`, `GET "b"`}},
	{"garbage after a hole is a wrong start, not an error of the client", true,
		[]event{client(get("a")), hole(10), turn(get("b") + "garbage\r\n" + get("false")), turn(get("c"))}, []string{`GET "a"`, `GET "b"`, `GET "c"`}},
	{"the end within a request", true,
		[]event{client("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nab"), end}, nil},
	{"bytes after an error", true,
		[]event{client("*1\r\n$-5\r\n"), server("-ERR Protocol error\r\n"), turn(get("never")), hole(5), turn(get("never"))}, nil},
}

func TestResync(t *testing.T) {
	for _, test := range resyncTests {
		t.Run(test.name, func(t *testing.T) {
			l, s := play(test.syn, test.events...)
			if !slices.Equal(l.got, test.want) {
				t.Errorf("%q, want %q; %+v", l.got, test.want, s)
			}
		})
	}
}

// TestAWrongStartIsLeft joins inside a value at text that announces a long
// argument; turns that begin with requests bring the connection back.
func TestAWrongStartIsLeft(t *testing.T) {
	l := &collector{d: newDecoder()}
	var c Conn
	l.d.Open(&c, false)
	for _, in := range []string{
		get("x"), // held
		"*3\r\n$3\r\nSET\r\n$5\r\nfalse\r\n$500000000\r\nxx", // the second turn: trusted
		get("a"), get("b"), get("c"), get("d"), get("e"),
	} {
		l.d.Feed(&c, []byte(in), true)
		l.drain()
	}
	want := []string{`GET "x"`, `GET "c"`, `GET "d"`, `GET "e"`}
	if !slices.Equal(l.got, want) {
		t.Errorf("%q, want %q", l.got, want)
	}
}

// TestClientsThatNeverWait has replies under way at every turn, so that no
// single turn is even; the sums are.
func TestClientsThatNeverWait(t *testing.T) {
	l := &collector{d: newDecoder()}
	var c Conn
	l.d.Open(&c, false)
	for range 40 {
		l.d.Feed(&c, []byte(get("a")+get("b")), true)
		l.drain()
		l.d.Reply(&c, []byte("+OK\r\n"), 5)
		l.d.Feed(&c, []byte(get("c")), true)
		l.drain()
		l.d.Reply(&c, []byte("+OK\r\n+OK\r\n"), 10)
	}
	if len(l.got) < 90 {
		t.Errorf("%d of 120 requests", len(l.got))
	}
}

func TestReplyWanted(t *testing.T) {
	d := newDecoder()
	var r Request
	var joined, opened Conn
	d.Open(&opened, true)
	if d.Reply(&opened, []byte("+OK\r\n"), 5) {
		t.Error("replies of a connection whose start was seen are wanted")
	}
	d.Open(&joined, false)
	for i, in := range []string{get("a"), get("b")} {
		d.Feed(&joined, []byte(in), true)
		for d.Next(&r) {
		}
		if got, want := d.Reply(&joined, []byte("+OK\r\n"), 5), i == 0; got != want {
			t.Errorf("turn %d: replies wanted %v, want %v", i, got, want)
		}
	}
	if !joined.Synced() {
		t.Error("not in sync")
	}
}

func TestReplyCounter(t *testing.T) {
	for _, test := range []struct {
		name   string
		in     string
		want   int64
		broken bool
	}{
		{"simple", "+OK\r\n-ERR x\r\n:1\r\n_\r\n#t\r\n,1.5\r\n(123\r\n", 7, false},
		{"bulks", "$0\r\n\r\n$-1\r\n$3\r\na\r\n\r\n=7\r\ntxt:abc\r\n!5\r\nERR x\r\n", 5, false},
		{"arrays", "*0\r\n*-1\r\n*2\r\n$1\r\na\r\n*1\r\n:1\r\n~1\r\n+a\r\n%1\r\n+k\r\n*0\r\n", 5, false},
		{"deep", strings.Repeat("*1\r\n", 100000) + ":1\r\n", 1, false},
		{"push", ">1\r\n+x\r\n+OK\r\n", 1, false},
		{"attribute", "|1\r\n+k\r\n+v\r\n*1\r\n:1\r\n", 1, false},
		{"unfinished", "*2\r\n:1\r\n", 0, false},
		{"streamed", "*?\r\n", 0, true},
		{"no reply", "x\r\n", 0, true},
		{"too many", strings.Repeat("*9000000000000000000\r\n", 9), 0, true},
	} {
		for _, step := range []int{1 << 20, 1, 3} {
			var s replies
			var n int64
			for b := []byte(test.in); len(b) > 0; {
				k := min(step, len(b))
				n += s.feed(b[:k], int64(k))
				b = b[k:]
			}
			if n != test.want || s.broken != test.broken {
				t.Errorf("%s in steps of %d: %d replies, broken %v, want %d, %v", test.name, step, n, s.broken, test.want, test.broken)
			}
		}
	}
	var s replies
	if n := s.feed([]byte("$100\r\n12345"), 6+102); n != 1 || s.broken {
		t.Errorf("a bulk cut by the capture: %d replies, broken %v, want 1, false", n, s.broken)
	}
	if s.feed([]byte("+OK"), 5); !s.broken {
		t.Error("a line cut by the capture: not broken")
	}
}

// TestSecrets checks that passwords, scripts and values do not leave the
// decoder, whatever place they stand in.
func TestSecrets(t *testing.T) {
	const secret = "S3cret-pw"
	requests := [][]string{
		{"AUTH", secret}, {"AUTH", "user", secret}, {"HELLO", "3", "AUTH", "user", secret},
		{"CONFIG", "SET", "requirepass", secret}, {"CONFIG", "SET", "masterauth", secret},
		{"ACL", "SETUSER", "u", ">" + secret}, {"SENTINEL", "SET", "m", "auth-pass", secret},
		{"MIGRATE", "h", "1", "key", "0", "5", "AUTH", secret},
		{"MIGRATE", "h", "1", "", "0", "5", "AUTH2", "u", secret, "KEYS", "key"},
		{"EVAL", secret, "1", "key"}, {"SCRIPT", "LOAD", secret}, {"FUNCTION", "LOAD", secret},
		{"SET", "key", secret}, {"GETSET", "key", secret}, {secret, "x"}, {"XADD", "key", "*", "f", secret},
	}
	for _, args := range requests {
		inline := strings.Join(args, " ")
		for _, in := range [][]byte{array(args...), []byte(strings.ReplaceAll(inline, "  ", ` "" `) + "\r\n")} {
			for _, step := range []int{1 << 20, 1} {
				d := newDecoder()
				n := 0
				feedSteps(d, in, step, func(r *Request) {
					n++
					for _, k := range r.Keys {
						if bytes.Contains(k.Bytes[:cap(k.Bytes)], []byte(secret)) && bytes.Contains(k.Bytes, []byte(secret)) {
							t.Errorf("%q: key %q", args, k.Bytes)
						}
						if string(k.Bytes) != "key" {
							t.Errorf("%q: key %q", args, k.Bytes)
						}
					}
					if strings.Contains(d.CommandName(r.Command), secret) {
						t.Errorf("%q: command %q", args, d.CommandName(r.Command))
					}
				})
				if n != 1 {
					t.Errorf("%q: %d requests, want 1", in, n)
				}
			}
		}
	}
}
