package pipeline

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/hotsniff/hotsniff/internal/testkit"
)

// near is how far in time and place a packet may be moved: less than the
// assembler waits for it.
const (
	nearTime   = 20e6
	nearPlaces = 4
)

// damage turns what was sent into what was captured.
func (s *scenario) damage() {
	slices.SortStableFunc(s.events, func(a, b simPacket) int { return cmp.Compare(a.t, b.t) })
	if s.oneWay {
		s.events = slices.DeleteFunc(s.events, func(p simPacket) bool {
			return p.dir == 1 || len(p.data) == 0 && p.flags&(testkit.SYN|testkit.FIN|testkit.RST) == 0
		})
	}
	s.copy()
	s.swapOrder()
	s.events = s.events[s.start():]
	kept := s.events[:0]
	for _, p := range s.events {
		if s.rng.Float64() < s.loss {
			continue
		}
		if s.snap > 0 {
			p.cut = s.snap
		}
		kept = append(kept, p)
	}
	s.events = kept
	s.dropUnprovable()
	if s.idle {
		s.addIdle()
	}
	s.stampTimes()
}

// start is the first packet that is captured. It may be one in the middle of a
// value that begins like a request.
func (s *scenario) start() int {
	first := min(s.head, len(s.events)/2)
	if first == 0 || s.rng.IntN(2) == 0 {
		return first
	}
	for i := first; i < len(s.events)*3/4; i++ {
		if p := &s.events[i]; p.falseStart() && s.provable(p) {
			return i
		}
	}
	return first
}

// falseStart reports whether a client's packet begins like a request, but is
// the inside of a value.
func (p *simPacket) falseStart() bool {
	return p.dir == 0 && bytes.HasPrefix(p.data, []byte(junkRequest)) && bytes.Contains(p.data[:min(len(p.data), 40)], []byte("false:"))
}

// dropUnprovable takes away a false start at the begin of what was captured of
// a connection where nothing contradicts it. That needs the replies to this
// turn and a next one; of a capture without replies the number of their bytes,
// which says something when the turn was one request. Otherwise the decoder
// believes what it sees, which is all that it can do.
func (s *scenario) dropUnprovable() {
	seen := map[*simConn]bool{}
	s.events = slices.DeleteFunc(s.events, func(p simPacket) bool {
		if p.c == nil || p.dir == 1 || seen[p.c] {
			return false
		}
		if p.falseStart() && !s.provable(&p) {
			return true
		}
		seen[p.c] = len(p.data) > 0 || p.flags&testkit.SYN != 0
		return false
	})
}

func (s *scenario) provable(p *simPacket) bool {
	for i := range p.c.turns {
		if t := &p.c.turns[i]; p.off < t.to {
			return s.loss == 0 && i+1 < len(p.c.turns) && (!s.oneWay || len(p.c.of(i)) == 1)
		}
	}
	return false
}

// room is how many places the packet at i may be moved back: it stays near, on
// its side of the next SYN and RST of its connection's addresses.
func (s *scenario) room(i int) int {
	p := &s.events[i]
	for n := 1; ; n++ {
		if n > nearPlaces || i+n >= len(s.events) {
			return n - 1
		}
		q := &s.events[i+n]
		if q.t-p.t > nearTime || q.c.client.Addr() == p.c.client.Addr() && q.flags&(testkit.SYN|testkit.RST) != 0 {
			return n - 1
		}
	}
}

// copy adds duplicates and retransmissions that begin and end anywhere, in a
// few places behind the original.
func (s *scenario) copy() {
	if s.copies == 0 {
		return
	}
	type added struct {
		at int
		p  simPacket
	}
	var all []added
	for i := range s.events {
		if s.rng.Float64() >= s.copies {
			continue
		}
		p := s.events[i]
		if room := s.room(i); room > 0 {
			at := i + s.rng.IntN(room) + 1
			p.t = s.events[at].t
			if len(p.data) > 0 {
				s.merge(i, at, &p)
			}
			all = append(all, added{at, p})
		}
	}
	slices.SortStableFunc(all, func(a, b added) int { return a.at - b.at })
	out := make([]simPacket, 0, len(s.events)+len(all))
	for i, p := range s.events {
		out = append(out, p)
		for len(all) > 0 && all[0].at == i {
			out = append(out, all[0].p)
			all = all[1:]
		}
	}
	s.events = out
}

// merge makes the copy of packet i one that goes on with the bytes that its
// connection sent up to place at, and that ends anywhere in them.
func (s *scenario) merge(i, at int, p *simPacket) {
	if s.rng.IntN(2) == 0 {
		return
	}
	data := slices.Clone(p.data)
	for j := i + 1; j <= at; j++ {
		q := &s.events[j]
		if q.c == p.c && q.dir == p.dir && q.off == p.off+int64(len(data)) && len(data)+len(q.data) < 60000 {
			data = append(data, q.data...)
		}
	}
	skip := s.rng.IntN(len(data))
	p.off += int64(skip)
	p.data = data[skip : skip+1+s.rng.IntN(len(data)-skip)]
}

// swapOrder moves packets a few places back.
func (s *scenario) swapOrder() {
	if s.swap == 0 {
		return
	}
	for i := 0; i < len(s.events); i++ {
		p := s.events[i]
		if len(p.data) == 0 || s.rng.Float64() >= s.swap {
			continue
		}
		room := min(s.room(i), nearPlaces-1)
		if room <= 0 {
			continue
		}
		n := 1 + s.rng.IntN(room)
		copy(s.events[i:], s.events[i+1:i+n+1])
		p.t = s.events[i+n-1].t
		s.events[i+n] = p
		i += n
	}
}

// addIdle adds the moments at which a live source says that nothing came.
func (s *scenario) addIdle() {
	var out []simPacket
	for i, p := range s.events {
		if i > 0 {
			for t, n := s.events[i-1].t+250e6, 0; t < p.t && n < 6; t, n = t+250e6, n+1 {
				out = append(out, simPacket{t: t})
			}
		}
		out = append(out, p)
	}
	s.events = out
}

// stampTimes gives every event its packet time, by clocks that jump and differ.
func (s *scenario) stampTimes() {
	for i := range s.events {
		p := &s.events[i]
		p.stamp = simEpoch + p.t
		if p.t >= s.jumpAt {
			p.stamp += s.jump
		}
		if s.jitter > 0 {
			p.stamp -= s.rng.Int64N(s.jitter)
		}
	}
}
