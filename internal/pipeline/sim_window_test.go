package pipeline

import (
	"fmt"
	"math"
	"net/netip"

	"github.com/hotsniff/hotsniff/internal/report"
	"github.com/hotsniff/hotsniff/topk"
)

// simWindow is what was accessed in a time at a port.
type simWindow struct {
	all      uint64
	accesses []uint64 // by key
	distinct uint64
	entries  []counted1
}

// window counts the accesses at a port in from <= time < to, among the events
// below the given number.
func (o *oracle) window(port uint16, from, to int64, events int) *simWindow {
	w := &simWindow{accesses: make([]uint64, len(o.s.keys))}
	for _, l := range o.log {
		if l.c.server.Port() != port || l.event >= events || l.t < from || l.t >= to {
			continue
		}
		w.entries = append(w.entries, l)
		for _, k := range l.r.keys {
			if w.accesses[k] == 0 {
				w.distinct++
			}
			w.accesses[k]++
			w.all++
		}
	}
	return w
}

// check compares a view of the detector with the exact window.
func (w *simWindow) check(s *topk.Snapshot, o *oracle) error {
	if s.Accesses != w.all {
		return fmt.Errorf("%d accesses; want %d", s.Accesses, w.all)
	}
	if s.WindowSeconds == 60 && s.DistinctExact && s.Distinct != w.distinct {
		return fmt.Errorf("%d distinct keys; want %d", s.Distinct, w.distinct)
	}
	if s.WindowSeconds == 60 && !s.DistinctExact && math.Abs(float64(s.Distinct)-float64(w.distinct)) > 0.2*float64(w.distinct)+20 {
		return fmt.Errorf("about %d distinct keys; want %d", s.Distinct, w.distinct)
	}
	for i := range s.Keys {
		k := &s.Keys[i]
		id, err := o.key(k.Key, k.KeyLen)
		if err != nil {
			return err
		}
		n := w.accesses[id]
		if n < k.Accesses || n > k.Accesses+k.AccessesError {
			return fmt.Errorf("key %q: %d accesses, error %d; want %d", k.Key, k.Accesses, k.AccessesError, n)
		}
		if w.all == 0 {
			continue
		}
		if share := float64(n) / float64(w.all); share < k.ShareLow-1e-9 || share > k.ShareHigh+1e-9 {
			return fmt.Errorf("key %q: share %v in [%v, %v]; want %v", k.Key, k.Share, k.ShareLow, k.ShareHigh, share)
		}
	}
	return nil
}

// keyDetails is what the oracle knows of a key beside its accesses.
type keyDetails struct {
	commands           map[string]uint64
	writes, bytes      uint64
	clients            map[netip.Addr]bool
	repliesLow, replyH uint64 // reply bytes: at least, at most
}

// checkDetails compares what is told of each key of an exact run that is one
// window.
func (o *oracle) checkDetails(got map[portKey]*report.Key) error {
	want := map[portKey]*keyDetails{}
	for _, c := range o.s.conns {
		o.addDetails(c, want)
	}
	for pk, k := range got {
		d := want[pk]
		if k.Writes != d.writes || k.Reads+k.Writes != k.Accesses || k.RequestBytes != d.bytes {
			return fmt.Errorf("key %q: %d writes, %d reads, %d bytes; want %d writes, %d bytes", k.Key, k.Writes, k.Reads, k.RequestBytes, d.writes, d.bytes)
		}
		if int(k.Clients) != len(d.clients) {
			return fmt.Errorf("key %q: %d clients; want %d", k.Key, k.Clients, len(d.clients))
		}
		if k.ReplyBytes < d.repliesLow || k.ReplyBytes > d.replyH {
			return fmt.Errorf("key %q: %d bytes of replies; want %d to %d", k.Key, k.ReplyBytes, d.repliesLow, d.replyH)
		}
		for name, n := range d.commands {
			if k.Commands[name] != n {
				return fmt.Errorf("key %q: %s %d; want %d", k.Key, name, k.Commands[name], n)
			}
		}
	}
	return nil
}

func (o *oracle) addDetails(c *simConn, all map[portKey]*keyDetails) {
	turn := 0
	for i := range c.requests {
		for turn+1 < len(c.turns) && i >= c.turns[turn+1].first {
			turn++
		}
		r := &c.requests[i]
		last := turn+1 == len(c.turns)
		alone := !last && !c.eager && len(r.keys) == 1 && c.turns[turn+1].first-c.turns[turn].first == 1
		seen := map[int]bool{}
		for _, k := range r.keys {
			pk := portKey{c.server.Port(), k}
			d := all[pk]
			if d == nil {
				d = &keyDetails{commands: map[string]uint64{}, clients: map[netip.Addr]bool{}}
				all[pk] = d
			}
			d.commands[r.command]++
			d.clients[c.client.Addr()] = true
			d.bytes += uint64(r.end-r.from) / uint64(len(r.keys))
			if r.write {
				d.writes++
			}
			if alone {
				d.repliesLow += uint64(c.turns[turn].replyBytes)
			}
			switch {
			case c.eager && i == 0:
				d.replyH += 1 << 40 // which turn they belong to is anybody's guess
			case c.eager:
				d.replyH += 1 << 40
			case !seen[k]:
				d.replyH += uint64(c.turns[turn].replyBytes)
			}
			seen[k] = true
		}
	}
}
