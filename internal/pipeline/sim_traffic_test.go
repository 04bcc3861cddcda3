package pipeline

import (
	"bytes"
	"net/netip"

	"github.com/hotsniff/hotsniff/internal/testkit"
)

// simConn is one TCP connection. Offsets count the bytes of a direction from
// its first one.
type simConn struct {
	client, server netip.AddrPort
	isn            [2]uint32 // of the client, of the server
	sent           [2]int64  // bytes sent so far
	mss            int
	eager          bool // the client does not wait for replies
	turns          []simTurn
	requests       []simRequest
	half           *simRequest // cut off by the end of the connection
	jumped         int         // turns before a jump that the connection lived across, -1: none
	synSeen        bool        // its start is in the capture
	acked          int64       // server bytes that the client has
	acks           []simAck    // of an eager client: replies on their way
	replied        int64       // time of the last reply
}

type simAck struct{ t, offset int64 }

// simTurn is what a client sends at once.
type simTurn struct {
	from, to   int64 // client bytes
	first      int   // request
	replyBytes int64
	strict     bool // begins as an array, with the name in the first segment
}

// of returns the requests of a turn.
func (c *simConn) of(turn int) []simRequest {
	if turn+1 < len(c.turns) {
		return c.requests[c.turns[turn].first:c.turns[turn+1].first]
	}
	return c.requests[c.turns[turn].first:]
}

// simRequest is one request; offsets are client bytes.
type simRequest struct {
	from, end      int64
	value, valueTo int64 // a value, 0 to 0 when there is none
	command        string
	keys           []int
	write          bool
}

// simPacket is one captured frame, or a moment at which nothing comes.
type simPacket struct {
	c     *simConn // nil: nothing came
	t     int64    // virtual time
	dir   uint8    // 0: the client sent it
	flags byte
	off   int64 // of data, in the bytes of the direction
	ack   int64
	data  []byte
	cut   int   // bytes captured of the frame, 0: all
	stamp int64 // packet time
}

// traffic draws the packets of all clients.
func (s *scenario) traffic() {
	for i := range s.clients {
		c := simClient{s: s, t: s.rng.Int64N(1e9), port: s.ports[s.rng.IntN(len(s.ports))]}
		if s.rng.IntN(3) > 0 {
			c.client = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i%5)}), uint16(40000+i*100))
			c.server = netip.AddrPortFrom(netip.MustParseAddr("10.0.9.9"), c.port)
		} else {
			c.client = netip.AddrPortFrom(netip.AddrFrom16([16]byte{0x20, 1, 15: byte(1 + i%5)}), uint16(40000+i*100))
			c.server = netip.AddrPortFrom(netip.MustParseAddr("2001::99"), c.port)
		}
		for c.t < s.end {
			c.connection()
		}
	}
}

// simClient sends on one connection after the other.
type simClient struct {
	s              *scenario
	c              *simConn
	t              int64
	port           uint16
	client, server netip.AddrPort
	jumped         bool
}

func (cl *simClient) send(dir uint8, flags byte, data []byte) {
	c := cl.c
	p := simPacket{c: c, t: cl.t, dir: dir, flags: flags, off: c.sent[dir], ack: c.sent[1-dir], data: data}
	if dir == 0 {
		for len(c.acks) > 0 && c.acks[0].t <= cl.t {
			c.acked = c.acks[0].offset
			c.acks = c.acks[1:]
		}
		p.ack = c.acked
	}
	c.sent[dir] += int64(len(data))
	cl.s.events = append(cl.s.events, p)
	cl.t += 1000 + cl.s.rng.Int64N(20000)
}

// connection is one connection from SYN to its end.
func (cl *simClient) connection() {
	s, rng := cl.s, cl.s.rng
	c := &simConn{client: cl.client, server: cl.server, mss: []int{1460, 1460, 8900, 60000}[rng.IntN(4)], eager: rng.IntN(5) == 0, jumped: -1}
	for dir := range c.isn {
		switch last := cl.c; {
		case last != nil:
			// As RFC 6528 has it: ahead of all that was sent from this address.
			c.isn[dir] = last.isn[dir] + uint32(last.sent[dir]) + 250_000<<rng.IntN(12)
		case rng.IntN(4) == 0:
			c.isn[dir] = -uint32(rng.IntN(20000)) // about to wrap around
		default:
			c.isn[dir] = rng.Uint32()
		}
	}
	cl.c = c
	s.conns = append(s.conns, c)
	cl.send(0, testkit.SYN, nil)
	cl.send(1, testkit.SYN|testkit.ACK, nil)
	cl.send(0, testkit.ACK, nil)
	resume := int64(0)
	for {
		next := cl.t + int64(s.gap*rng.ExpFloat64())
		if s.jump > 0 && !cl.jumped && next >= s.jumpAt-100e6 {
			cl.jumped = true
			next = max(next, s.jumpAt+1e6)
			if s.reconnect {
				resume = next
				break
			}
			c.jumped = len(c.turns)
		}
		cl.t = next
		if cl.t >= s.end {
			break
		}
		cl.turn()
		if rng.Float64() < s.restart {
			break
		}
	}
	cl.t = max(cl.t, c.replied)
	cl.close()
	cl.t = max(cl.t+1e9+rng.Int64N(2e9), resume)
	if rng.IntN(2) == 0 {
		cl.client = netip.AddrPortFrom(cl.client.Addr(), cl.client.Port()+1)
	}
}

// close ends the connection, in one of four ways.
func (cl *simClient) close() {
	rng := cl.s.rng
	switch rng.IntN(4) {
	case 0:
		cl.send(0, testkit.RST|testkit.ACK, nil)
	case 1: // a server that ends in the middle of a request
		r, b := cl.request(cl.t)
		cl.c.half = &r
		cl.send(0, testkit.ACK, b[:1+rng.IntN(min(len(b)-1, cl.c.mss))])
		cl.send(1, testkit.RST, nil)
	case 2:
		cl.send(0, testkit.FIN|testkit.ACK, nil)
		cl.send(1, testkit.FIN|testkit.ACK, nil)
	default: // gone without a word
	}
}

// turn sends a pipeline and, unless the client is eager, waits for the replies.
func (cl *simClient) turn() {
	s, c, rng := cl.s, cl.c, cl.s.rng
	t := simTurn{from: c.sent[0], first: len(c.requests)}
	n := 1
	if rng.IntN(4) == 0 {
		n += rng.IntN(12)
	}
	var buf, reply []byte
	for range n {
		r, b := cl.request(cl.t)
		r.place(t.from + int64(len(buf)))
		c.requests = append(c.requests, r)
		buf = append(buf, b...)
		reply = cl.reply(reply, &r)
	}
	first := &c.requests[t.first]
	t.to = t.from + int64(len(buf))
	t.replyBytes = int64(len(reply))
	t.strict = buf[0] == '*' && first.command != "OTHER"
	if len(buf) < 500 && rng.Float64() < s.pieces {
		t.strict = false
		cl.sendPieces(buf)
	} else {
		cl.sendAll(0, buf)
	}
	c.turns = append(c.turns, t)
	sentAt := cl.t
	if rng.IntN(3) == 0 {
		cl.t += rng.Int64N(100_000)
		cl.send(1, testkit.ACK, nil)
	}
	cl.t = max(cl.t+50_000+rng.Int64N(3e6), c.replied)
	cl.sendAll(1, reply)
	c.replied = cl.t
	if c.eager {
		c.acks = append(c.acks, simAck{cl.t, c.sent[1]})
		cl.t = sentAt
		return
	}
	c.acked = c.sent[1]
	if rng.IntN(2) == 0 {
		cl.send(0, testkit.ACK, nil)
	}
}

// sendAll sends b in segments as long as they get.
func (cl *simClient) sendAll(dir uint8, b []byte) {
	trap := cl.s.fake && !cl.c.eager && cl.s.rng.IntN(2) == 0
	for len(b) > 0 {
		n := min(len(b), cl.c.mss)
		if dir == 0 && trap {
			// The next segment may begin with what looks like a request.
			if at := bytes.LastIndex(b[:n], []byte(junkRequest)); at > 0 && n < len(b) {
				n = at
			}
		}
		cl.send(dir, testkit.ACK, b[:n])
		b = b[n:]
	}
}

// sendPieces sends b in pieces, some of a single byte.
func (cl *simClient) sendPieces(b []byte) {
	for len(b) > 0 {
		n := 1
		if cl.s.rng.IntN(2) == 0 {
			n = 1 + cl.s.rng.IntN(min(len(b), 60))
		}
		cl.send(0, testkit.ACK, b[:n])
		b = b[n:]
	}
}
