package pipeline

import (
	"slices"

	"github.com/hotsniff/hotsniff/internal/testkit"
)

// seenBytes is what the capture has of one connection.
type seenBytes struct {
	client, server spans
	told           spans // client bytes of which a packet told, cut or not
	ended          int   // requests that are complete in what was captured so far
}

// spans are ranges of bytes, sorted, apart from each other.
type spans [][2]int64

// add joins a range to the spans.
func (s *spans) add(from, to int64) {
	if from >= to {
		return
	}
	i := 0
	for i < len(*s) && (*s)[i][1] < from {
		i++
	}
	j := i
	for j < len(*s) && (*s)[j][0] <= to {
		from, to = min(from, (*s)[j][0]), max(to, (*s)[j][1])
		j++
	}
	*s = slices.Replace(*s, i, j, [2]int64{from, to})
}

// prefix is how far the bytes go without a hole.
func (s spans) prefix() int64 {
	if len(s) == 0 || s[0][0] > 0 {
		return 0
	}
	return s[0][1]
}

// holes calls f with every range in from..to that is missing.
func (s spans) holes(from, to int64, f func(from, to int64)) {
	for _, r := range s {
		if r[1] <= from {
			continue
		}
		if r[0] >= to {
			break
		}
		if r[0] > from {
			f(from, r[0])
		}
		from = r[1]
	}
	if from < to {
		f(from, to)
	}
}

// watch reads the capture as a perfect decoder would: it fills the log, in
// which a request counts at the packet that completes it, and what must be
// counted in spite of all damage.
func (o *oracle) watch() {
	seen := map[*simConn]*seenBytes{}
	for i := range o.s.events {
		p := &o.s.events[i]
		if p.c == nil {
			continue
		}
		b := seen[p.c]
		if b == nil {
			b = &seenBytes{}
			seen[p.c] = b
		}
		if p.dir == 1 {
			b.server.add(p.off, p.off+int64(len(p.data)))
			continue
		}
		if p.flags&testkit.SYN != 0 && len(b.client) == 0 {
			p.c.synSeen = true
		}
		b.take(p)
		for b.ended < len(p.c.requests) && p.c.requests[b.ended].end <= b.client.prefix() {
			o.log = append(o.log, counted1{i, o.now[i], p.c, &p.c.requests[b.ended]})
			b.ended++
		}
	}
	for _, c := range o.s.conns {
		if b := seen[c]; b != nil {
			o.certain(c, b)
		}
	}
}

// take adds the bytes of a client's packet. The first copy counts: bytes that
// the snap length cut are given up at once.
func (b *seenBytes) take(p *simPacket) {
	captured, all := p.off+int64(p.captured()), p.off+int64(len(p.data))
	b.told.holes(p.off, all, func(from, to int64) { b.client.add(from, min(to, captured)) })
	b.told.add(p.off, all)
}

// How many turns in a row that begin right it takes to be in sync.
const (
	turnsLost   = 1 // behind a hole
	turnsJoined = 2 // on a connection whose start was not seen
)

// certain adds the requests of a connection that must be counted:
//
//   - seen from its start: up to the first hole that takes more than bytes of a
//     value, and again from the first turn behind it that begins right;
//   - joined in the middle or after a long silence: from the second turn in a
//     row that begins right, up to such a hole as well. A hole that comes
//     earlier makes turns run together while it is waited for, so nothing is
//     certain any more.
//
// A turn begins right when it is whole, begins with a request that says what it
// is in its first segment, and when the turn before was whole, with its
// replies. Clients that do not wait for replies have no turns; a turn that was
// captured behind its own reply does not show that it is one.
func (o *oracle) certain(c *simConn, b *seenBytes) {
	if len(b.client) == 0 {
		return
	}
	turns := !c.eager && o.s.swap == 0
	inSync, rightBefore, replied := c.synSeen, false, int64(0)
	good, need := 0, turnsJoined
	for i := range c.turns {
		if i == c.jumped {
			inSync, good, need = false, 0, turnsJoined
		}
		t := &c.turns[i]
		whole, late := true, false
		b.client.holes(t.from, t.to, func(_, to int64) { whole, late = false, late || to > b.client[0][0] })
		if good++; !turns || !whole || !rightBefore || !t.strict {
			good = 0
		}
		inSync = inSync || good >= need
		requests := c.of(i)
		harm := firstHarm(b, t, requests)
		for j := range requests {
			if inSync && requests[j].end <= harm {
				o.must.add(c, &requests[j])
			}
		}
		switch {
		case inSync && harm < t.to:
			inSync, good, need = false, 0, turnsLost
		case !inSync && late && need == turnsJoined:
			turns = false
		}
		rightBefore = whole
		if !o.s.oneWay {
			b.server.holes(replied, replied+t.replyBytes, func(int64, int64) { rightBefore = false })
		}
		replied += t.replyBytes
	}
}

// firstHarm is where the first hole of a turn begins that takes more than
// bytes of a value, or the end of the turn.
func firstHarm(b *seenBytes, t *simTurn, requests []simRequest) int64 {
	harm := t.to
	b.client.holes(t.from, t.to, func(from, to int64) {
		for i := range requests {
			if r := &requests[i]; r.value <= from && to <= r.valueTo {
				return
			}
		}
		harm = min(harm, from)
	})
	return harm
}
