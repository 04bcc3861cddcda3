package pipeline

import (
	"bytes"
	"fmt"
)

// junk is where values are cut from: letters, and the text of requests for
// keys that nobody ever sends.
var junk = func() (all [2][]byte) {
	all[0] = bytes.Repeat([]byte("abcdefghijklmnopqrstuvwxyz\r\n"), 1<<17/28)
	var b []byte
	for i := 0; len(b) < 1<<17; i++ {
		key := fmt.Sprintf("false:%d", i)
		b = fmt.Appendf(b, junkRequest+"$%d\r\n%s\r\n$1\r\nx\r\n*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", len(key), key, len(key), key)
	}
	all[1] = b
	return all
}()

// junkRequest is how a request in a value begins.
const junkRequest = "*3\r\n$3\r\nSET\r\n"

// place moves a request to an offset in the bytes of its client.
func (r *simRequest) place(offset int64) {
	r.from += offset
	r.end += offset
	if r.valueTo > 0 {
		r.value += offset
		r.valueTo += offset
	}
}

// request draws a request and its bytes.
func (cl *simClient) request(t int64) (simRequest, []byte) {
	s, rng := cl.s, cl.s.rng
	key := s.pick(t)
	r := simRequest{keys: []int{key}}
	var b []byte
	switch n := rng.IntN(100); {
	case n < 5 && key != 2 && key != 3: // a line of text has no room for odd keys
		r.command = "GET"
		b = fmt.Appendf(nil, "GET %s\r\n", s.keys[key])
	case n < 55:
		r.command = "GET"
		b = command("GET", s.keys[key])
	case n < 62:
		r.command, r.write = "INCR", true
		b = command("INCR", s.keys[key])
	case n < 70:
		r.command = "HGET"
		b = command("HGET", s.keys[key], []byte("field"))
	case n < 79:
		r.command = "MGET"
		args := [][]byte{s.keys[key]}
		for range rng.IntN(5) {
			k := s.pick(t)
			r.keys = append(r.keys, k)
			args = append(args, s.keys[k])
		}
		b = command("MGET", args...)
	case n < 81:
		r.command, r.keys = "PING", nil
		b = command("PING")
	case n < 82:
		r.command, r.keys = "OTHER", nil
		b = command("FOO.BAR", s.keys[key])
	case n < 83: // one of our own, which is a request but no access
		r.command, r.keys = "GET", nil
		b = command("GET", []byte("hotsniff:list"))
	default:
		r.command, r.write = "SET", true
		v := cl.value()
		b = command("SET", s.keys[key], v)
		r.valueTo = int64(len(b) - 2)
		r.value = r.valueTo - int64(len(v))
	}
	r.end = int64(len(b))
	return r, b
}

// value draws a value: mostly small, at times up to 100 kB.
func (cl *simClient) value() []byte {
	rng := cl.s.rng
	size := 100
	switch n := rng.IntN(100); {
	case n < 2:
		size = 100_000
	case n < 8:
		size = 20_000
	case n < 25:
		size = 2000
	}
	from := junk[0]
	if cl.s.fake && rng.IntN(2) == 0 {
		from = junk[1]
	}
	at := rng.IntN(len(from) - size)
	v := from[at : at+rng.IntN(size+1)]
	if end := bytes.LastIndex(v, []byte(junkRequest)); end > 0 && rng.IntN(2) == 0 {
		v = v[:end] // whole requests, to the end
	}
	return v
}

// command returns a request as an array.
func command(name string, args ...[]byte) []byte {
	b := fmt.Appendf(nil, "*%d\r\n$%d\r\n%s\r\n", 1+len(args), len(name), name)
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

// reply appends what the server answers.
func (cl *simClient) reply(b []byte, r *simRequest) []byte {
	bulk := func() {
		n := cl.s.rng.IntN(300)
		if n < 40 {
			b = append(b, "$-1\r\n"...)
			return
		}
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", n, junk[0][:n])
	}
	switch r.command {
	case "SET":
		b = append(b, "+OK\r\n"...)
	case "INCR":
		b = append(b, ":12\r\n"...)
	case "PING":
		b = append(b, "+PONG\r\n"...)
	case "OTHER":
		b = append(b, "-ERR unknown command\r\n"...)
	case "MGET":
		b = fmt.Appendf(b, "*%d\r\n", len(r.keys))
		for range r.keys {
			bulk()
		}
	default:
		bulk()
	}
	return b
}
