package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/internal/testkit"
	"github.com/hotsniff/hotsniff/topk"
)

// oracle plays a scenario to an engine and knows what has to come out. It is
// the engine's capture.Source, so it can look at every snapshot.
type oracle struct {
	s     *scenario
	e     *Engine
	now   []int64 // engine time of every event, by the rule in clock.go
	steps uint64
	log   []counted1 // exact runs: every request in the order it ends
	keys  map[string]int
	must  totals // what must be counted
	may   totals // what may be counted: all that was sent

	next     int // event
	last     *Snapshot
	err      error // first check that failed
	list     map[listedKey]listedState
	detector topk.Config
	lines    []byte // events, for the answer
	frame    []byte
}

// counted1 is one request of an exact run, counted at an event.
type counted1 struct {
	event int
	t     int64
	c     *simConn
	r     *simRequest
}

// portKey is a key at a server port.
type portKey struct {
	port uint16
	key  int
}

// totals are counts over a whole run.
type totals struct {
	requests, accesses map[uint16]int
	commands           map[string]int
	keys               map[portKey]int
}

func newTotals() totals {
	return totals{map[uint16]int{}, map[uint16]int{}, map[string]int{}, map[portKey]int{}}
}

func (n *totals) add(c *simConn, r *simRequest) {
	port := c.server.Port()
	n.requests[port]++
	n.accesses[port] += len(r.keys)
	n.commands[r.command]++
	for _, k := range r.keys {
		n.keys[portKey{port, k}]++
	}
}

func newOracle(s *scenario) *oracle {
	o := &oracle{s: s, keys: map[string]int{}, must: newTotals(), may: newTotals(), list: map[listedKey]listedState{}}
	for i, k := range s.keys {
		o.keys[string(k[:min(len(k), 1024)])] = i
	}
	o.followClock()
	o.watch()
	for _, c := range s.conns {
		for i := range c.requests {
			o.may.add(c, &c.requests[i])
		}
		if c.half != nil && !s.exact() {
			// Without the end of the connection it looks like one whose end
			// was not captured; that counts when all keys were.
			o.may.add(c, c.half)
		}
	}
	return o
}

// followClock works out the engine's time: never backwards, a step of more
// than a second shifts what comes.
func (o *oracle) followClock() {
	now, shift := int64(0), int64(0)
	for i := range o.s.events {
		t := o.s.events[i].stamp + shift
		if now-t > 1e9 {
			shift += now - t
			o.steps++
		}
		now = max(now, t)
		o.now = append(o.now, now)
	}
}

// run plays the scenario and returns all that the engine said.
func (o *oracle) run(seed uint64) (string, error) {
	o.detector = topk.Config{Seed: seed}
	if seed%2 == 0 {
		o.detector.MinStay, o.detector.Cooldown = 5*time.Second, 3*time.Second
	}
	cfg := Config{Whole: o.s.whole, Top: 50, Detector: o.detector, OnEvents: o.onEvents}
	if o.s.whole {
		cfg.Top = AllKeys
	}
	cfg.Ports, _ = capture.ParsePorts("6379,6380,7000")
	e, err := New(cfg, o)
	if err != nil {
		return "", err
	}
	o.e = e
	if err := e.Run(context.Background()); err != nil {
		return "", err
	}
	if o.err == nil {
		o.check(o.checkEnd(e.Latest()))
	}
	said, err := json.Marshal(e.Latest())
	if o.err == nil {
		o.err = err
	}
	return fmt.Sprintf("%x\n%s", sha256.Sum256(said), o.lines), o.err
}

// check keeps the first error.
func (o *oracle) check(err error) {
	if o.err == nil && err != nil {
		o.err = fmt.Errorf("at event %d: %w", o.next, err)
	}
}

// Next implements capture.Source.
func (o *oracle) Next(p *capture.Packet) error {
	if o.err != nil {
		return io.EOF
	}
	if snap := o.e.Latest(); snap != o.last {
		o.last = snap
		// It was made before the last event was counted.
		o.check(o.checkSnapshot(snap, o.next-1))
	}
	if o.next == len(o.s.events) {
		return io.EOF
	}
	ev := &o.s.events[o.next]
	o.next++
	*p = capture.Packet{T: ev.stamp, Link: capture.LinkTypeEthernet}
	if ev.c == nil {
		return capture.ErrTimeout
	}
	o.frame = ev.appendFrame(o.frame[:0])
	p.Data, p.WireLen = o.frame, len(o.frame)
	if ev.cut > 0 && ev.cut < len(o.frame) {
		p.Data = p.Data[:ev.cut]
	}
	return nil
}

// Stats, Stop and Close implement capture.Source.
func (o *oracle) Stats() capture.Stats { return capture.Stats{} }
func (o *oracle) Stop()                {}
func (o *oracle) Close() error         { return nil }

func (p *simPacket) appendFrame(b []byte) []byte {
	c := p.c
	from, to := c.client, c.server
	if p.dir == 1 {
		from, to = to, from
	}
	seq, ack := c.isn[p.dir]+1+uint32(p.off), c.isn[1-p.dir]+1+uint32(p.ack)
	if p.flags&testkit.SYN != 0 {
		seq--
	}
	return testkit.AppendSegment(b, from, to, seq, ack, p.flags, p.data)
}

// captured is how many bytes of the payload the snap length left.
func (p *simPacket) captured() int {
	header := 54
	if p.c.client.Addr().Is6() {
		header = 74
	}
	if p.cut == 0 {
		return len(p.data)
	}
	return min(max(p.cut-header, 0), len(p.data))
}
