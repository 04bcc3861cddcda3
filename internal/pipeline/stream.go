package pipeline

import (
	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/resp"
	"github.com/hotsniff/hotsniff/topk"
)

// conn is the state of one connection, kept inside its flow.
type conn struct {
	resp resp.Conn
	turn turn
}

// turn remembers whom the next reply bytes belong to. A client shows how much
// the server answered by its next acknowledgement number: those bytes answer
// the requests of its previous turn. Of a pipeline one request, drawn at
// random, stands for all: on average each gets its part.
type turn struct {
	handle   topk.Handle
	requests uint16 // accesses and keyless requests in the turn
}

// Open implements capture.Stream.
func (e *Engine) Open(c *conn, m *capture.Meta, syn bool) {
	*c = conn{}
	e.dec.Open(&c.resp, syn)
}

// Data implements capture.Stream.
func (e *Engine) Data(c *conn, m *capture.Meta, b []byte) {
	if m.ServerBytes > 0 {
		e.settle(c, m)
		e.dec.Acked(&c.resp, m.ServerBytes)
	}
	e.dec.Feed(&c.resp, b, m.Turn)
	e.drain(c, m)
}

// Gap implements capture.Stream.
func (e *Engine) Gap(c *conn, m *capture.Meta, n int64) {
	e.dec.Skip(&c.resp, n)
	e.drain(c, m)
}

// Reply implements capture.Stream.
func (e *Engine) Reply(c *conn, m *capture.Meta, b []byte, wire int) bool {
	want := e.dec.Reply(&c.resp, b, wire)
	e.drain(c, m)
	return want
}

// End implements capture.Stream.
func (e *Engine) End(c *conn, m *capture.Meta, why capture.EndReason) {
	e.dec.Close(&c.resp)
	e.drain(c, m)
}

// drain counts the requests that the decoder has ready.
func (e *Engine) drain(c *conn, m *capture.Meta) {
	for e.dec.Next(&e.req) {
		p := e.port(m.Port)
		if p == nil {
			e.refused++
			continue
		}
		e.count(p, c, m)
	}
}

// count counts the request in hand.
func (e *Engine) count(p *port, c *conn, m *capture.Meta) {
	r := &e.req
	if r.Flags&resp.FlagContinued == 0 {
		p.request(int(r.Command), 1)
	}
	if len(r.Keys) == 0 {
		c.turn.draw(e, 0)
		return
	}
	a := &e.access
	a.T, a.Client, a.Command = m.T, m.Client, uint16(r.Command)
	a.Bytes = r.Bytes / int64(len(r.Keys))
	for i := range r.Keys {
		k := &r.Keys[i]
		if ours(k.Bytes) {
			continue
		}
		a.Key, a.KeyLen = k.Bytes, k.Len
		a.Read, a.Write = k.Access&resp.AccessRead != 0, k.Access&resp.AccessWrite != 0
		p.accesses++
		c.turn.draw(e, p.add(a))
	}
}

// draw takes h for the turn's stand-in with a chance of one in as many
// requests as there were.
func (t *turn) draw(e *Engine, h topk.Handle) {
	if t.requests < 1<<16-1 {
		t.requests++
	}
	if t.requests == 1 || e.rand()%uint32(t.requests) == 0 {
		t.handle = h
	}
}

// settle hands the reply bytes of the past turn to its stand-in.
func (e *Engine) settle(c *conn, m *capture.Meta) {
	if p := e.ports[m.Port]; p != nil && c.turn.handle != 0 {
		p.addReply(c.turn.handle, int64(m.ServerBytes), c.turn.requests > 1)
	}
	c.turn = turn{}
}

// ownPrefix begins the names of the keys that hotsniff itself writes.
const ownPrefix = "hotsniff:"

// ours reports whether key is one of hotsniff's own: those never count.
func ours(key []byte) bool {
	return len(key) >= len(ownPrefix) && key[0] == ownPrefix[0] && string(key[:len(ownPrefix)]) == ownPrefix
}
