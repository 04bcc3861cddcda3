package testkit

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
)

// Traffic is a simulated capture: frames with packet times, and beside them
// what was sent. It is a function of its seed.
type Traffic struct {
	Frames []Frame
	Sent   Counts         // every request on the wire
	Sure   Counts         // those that every decoder must find whatever was lost
	Writes map[string]int // of Sent, accesses by commands that write
	Exact  bool           // nothing was damaged: what is found must equal Sent
}

// Frame is one captured frame.
type Frame struct {
	T    int64
	Data []byte
	Wire int // length on the wire, more than len(Data) when the capture cut it

	conn, turn int
	lost       bool
}

// simConn is one simulated connection.
type simConn struct {
	client, server *Flow
	turns          []simTurn
}

// simTurn is one pipeline of requests and its answer.
type simTurn struct {
	keys, commands, writes map[string]int
	requests               int
	damaged                bool // a frame of it, or the answer before it, is missing or cut
	swapped                bool // a frame of it changed places with another of the connection
}

// simulator draws one Traffic.
type simulator struct {
	rng    *rand.Rand
	t      int64
	frames []Frame
	conns  []*simConn
	twoWay bool
}

// Simulate returns the traffic of a seed to the server port given.
func Simulate(seed uint64, port uint16) *Traffic {
	s := &simulator{rng: rand.New(rand.NewPCG(seed, 1)), t: 1_700_000_000e9}
	s.twoWay = s.rng.IntN(2) == 0
	server := netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), port)
	for i := range 1 + s.rng.IntN(6) {
		client := netip.AddrPortFrom(netip.MustParseAddr("10.0.0.7"), uint16(40000+i))
		s.conns = append(s.conns, newSimConn(client, server, s.rng.Uint32(), s.rng.Uint32()))
	}
	for i, c := range s.conns {
		s.emit(i, c.client.Frame(SYN, nil), 0)
	}
	for range 20 + s.rng.IntN(200) {
		s.turn(s.rng.IntN(len(s.conns)))
	}
	return s.damage()
}

func newSimConn(client, server netip.AddrPort, clientSeq, serverSeq uint32) *simConn {
	c := &simConn{client: NewFlow(client, server), server: NewFlow(server, client)}
	c.client.seq, c.client.ack = clientSeq, serverSeq+1 // may wrap around
	c.server.seq, c.server.ack = serverSeq+1, clientSeq+1
	c.turns = append(c.turns, simTurn{}) // the SYN
	return c
}

// emit puts a copy of a frame into the capture.
func (s *simulator) emit(conn int, frame []byte, turn int) {
	s.t += 1000 + s.rng.Int64N(3_000_000)
	s.frames = append(s.frames, Frame{T: s.t, Data: slices.Clone(frame), Wire: len(frame), conn: conn, turn: turn})
}

// turn sends one pipeline in segments of any size, and its answer.
func (s *simulator) turn(conn int) {
	c := s.conns[conn]
	turn := simTurn{keys: map[string]int{}, commands: map[string]int{}, writes: map[string]int{}}
	var out []byte
	for range 1 + s.rng.IntN(8) {
		out = s.request(out, &turn)
	}
	c.turns = append(c.turns, turn)
	number := len(c.turns) - 1
	largest := 1460
	if s.rng.IntN(4) == 0 {
		largest = 1 + s.rng.IntN(200)
	}
	for len(out) > 0 {
		n := min(1+s.rng.IntN(largest), len(out))
		s.emit(conn, c.client.Frame(ACK, out[:n]), number)
		out = out[n:]
	}
	reply := []byte(strings.Repeat("+OK\r\n", turn.requests))
	c.server.ack = c.client.seq
	frame := c.server.Frame(ACK, reply)
	if s.twoWay {
		s.emit(conn, frame, number+1) // whoever misses it cannot see that the next turn opens
	}
	c.client.Answered(uint32(len(reply)))
}

// request appends one request and notes it in the turn.
func (s *simulator) request(out []byte, turn *simTurn) []byte {
	key := func() string {
		k := fmt.Sprintf("key:%d", int(40*s.rng.Float64()*s.rng.Float64()))
		turn.keys[k]++
		return k
	}
	name := ""
	defer func() { turn.requests++; turn.commands[name]++ }()
	switch s.rng.IntN(6) {
	case 0:
		name = "SET"
		k := key()
		turn.writes[k]++
		return AppendCommand(out, name, k, s.value())
	case 1:
		name = "MGET"
		return AppendCommand(out, name, key(), key(), key())
	case 2:
		name = "HGET"
		return AppendCommand(out, name, key(), "field")
	case 3:
		name = "PING"
		return AppendCommand(out, name)
	}
	name = "GET"
	return AppendCommand(out, name, key())
}

// value is the text of a SET: often requests that were never made.
func (s *simulator) value() string {
	n := s.rng.IntN(200)
	if s.rng.IntN(5) == 0 {
		n = s.rng.IntN(20000)
	}
	if s.rng.IntN(2) == 0 {
		return strings.Repeat("v", n)
	}
	lie := string(AppendCommand(nil, "GET", "false:key"))
	return strings.Repeat(lie, n/len(lie)+1)
}

// damage loses, swaps, doubles and cuts frames, and sums up what was sent.
func (s *simulator) damage() *Traffic {
	loss := []float64{0, 0, 0, .001, .01, .05}[s.rng.IntN(6)]
	swap := []float64{0, .02, .2}[s.rng.IntN(3)]
	double := []float64{0, .05}[s.rng.IntN(2)]
	snap := []int{0, 0, 0, 0, 96, 200, 600}[s.rng.IntN(7)]
	late := 0 // the capture begins in the middle
	if s.rng.IntN(4) == 0 {
		late = s.rng.IntN(len(s.frames))
	}
	t := &Traffic{Exact: loss == 0 && snap == 0 && late == 0}
	for i := range s.frames {
		f := &s.frames[i]
		f.lost = i < late || s.rng.Float64() < loss
		cut := snap > 0 && len(f.Data) > snap
		if cut {
			f.Data = f.Data[:snap]
		}
		if c := s.conns[f.conn]; f.turn < len(c.turns) && (f.lost || cut) {
			c.turns[f.turn].damaged = true
		}
	}
	for _, f := range s.frames {
		if f.lost {
			continue
		}
		t.Frames = append(t.Frames, f)
		if s.rng.Float64() < double {
			t.Frames = append(t.Frames, f)
		}
	}
	for i := 1; i < len(t.Frames); i++ {
		// A SYN does not change places: a round trip lies between it and data.
		a, b := &t.Frames[i-1], &t.Frames[i]
		if s.rng.Float64() < swap && a.turn > 0 && b.turn > 0 {
			if a.conn == b.conn {
				s.swapped(a)
				s.swapped(b)
			}
			*a, *b = *b, *a
			a.T, b.T = b.T, a.T
		}
	}
	s.sum(t)
	return t
}

func (s *simulator) swapped(f *Frame) {
	if turns := s.conns[f.conn].turns; f.turn < len(turns) {
		turns[f.turn].swapped = true
	}
}

// sum adds the turns up. Sure are the whole turns of connections whose start
// was seen, but for those after damage until two turns went by in order: then
// the decoder had every occasion to get back in step.
func (s *simulator) sum(t *Traffic) {
	t.Sent, t.Sure, t.Writes = newCounts(), newCounts(), map[string]int{}
	for _, c := range s.conns {
		inStep, clear := !c.turns[0].damaged, 0
		for i := range c.turns {
			turn := &c.turns[i]
			t.Sent.add(turn)
			for k, n := range turn.writes {
				t.Writes[k] += n
			}
			switch {
			case turn.damaged:
				inStep, clear = false, 0
			case inStep:
				t.Sure.add(turn)
			case turn.swapped:
				clear = 0
			default:
				clear++
				inStep = clear == 2 && !c.turns[0].damaged
			}
		}
	}
}

func newCounts() Counts { return Counts{Commands: map[string]int{}, Keys: map[string]int{}} }

func (c *Counts) add(turn *simTurn) {
	c.Requests += turn.requests
	for k, n := range turn.keys {
		c.Keys[k] += n
		c.KeyAccesses += n
	}
	for name, n := range turn.commands {
		c.Commands[name] += n
	}
	c.DistinctKeys = len(c.Keys)
}

// Shift moves the times of all frames from index i on: a clock that was set.
func Shift(frames []Frame, i int, by int64) {
	for ; i < len(frames); i++ {
		frames[i].T += by
	}
}
