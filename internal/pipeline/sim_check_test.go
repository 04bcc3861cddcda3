package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hotsniff/hotsniff/internal/report"
	"github.com/hotsniff/hotsniff/topk"
)

// checkSnapshot checks a snapshot that was made when the given number of
// events had been counted.
func (o *oracle) checkSnapshot(s *Snapshot, events int) error {
	if s.ClockSteps > o.steps {
		return fmt.Errorf("%d clock steps; want %d", s.ClockSteps, o.steps)
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		if err := o.checkPort(s, p, events); err != nil {
			return fmt.Errorf("port %d: %w", p.Port, err)
		}
	}
	return nil
}

func (o *oracle) checkPort(s *Snapshot, p *PortSnapshot, events int) error {
	if err := o.checkSent(s, p); err != nil {
		return err
	}
	if !o.s.exact() || s.Whole {
		return nil
	}
	if err := o.checkRequests(s, p, events); err != nil {
		return err
	}
	for _, view := range []*topk.Snapshot{p.Slow, p.Fast} {
		w := o.window(p.Port, view.From, 1<<62, events)
		if err := w.check(view, o); err != nil {
			return fmt.Errorf("window of %d s: %w", view.WindowSeconds, err)
		}
	}
	return o.checkListed(p, events)
}

// checkSent checks that nothing is there that was not sent.
func (o *oracle) checkSent(s *Snapshot, p *PortSnapshot) error {
	if p.Requests > uint64(o.may.requests[p.Port]) || p.Accesses > uint64(o.may.accesses[p.Port]) {
		return fmt.Errorf("%d requests, %d accesses; sent %d, %d", p.Requests, p.Accesses, o.may.requests[p.Port], o.may.accesses[p.Port])
	}
	sum, window := uint64(0), uint64(0)
	for id, n := range p.Commands {
		sum += n
		window += p.Window[id]
		if name := s.CommandName(uint16(id)); n > uint64(o.may.commands[name]) || p.Window[id] > n {
			return fmt.Errorf("command %s: %d, in the window %d; sent %d", name, n, p.Window[id], o.may.commands[name])
		}
	}
	if sum != p.Requests || window > sum {
		return fmt.Errorf("%d commands, in the window %d; %d requests", sum, window, p.Requests)
	}
	for i := range p.Slow.Keys {
		k := &p.Slow.Keys[i]
		id, err := o.key(k.Key, k.KeyLen)
		if err != nil {
			return err
		}
		if sent := o.may.keys[portKey{p.Port, id}]; k.Accesses > uint64(sent) {
			return fmt.Errorf("key %q: %d accesses; sent %d", k.Key, k.Accesses, sent)
		}
	}
	return nil
}

// key returns the number of a key; an error when it was never sent.
func (o *oracle) key(key []byte, full int64) (int, error) {
	id, ok := o.keys[string(key)]
	if !ok || full != int64(len(o.s.keys[id])) {
		return 0, fmt.Errorf("key %q of %d bytes was never sent", key, full)
	}
	return id, nil
}

// checkRequests checks what was counted since the start and in the last minute.
func (o *oracle) checkRequests(s *Snapshot, p *PortSnapshot, events int) error {
	requests, accesses, window := uint64(0), uint64(0), map[string]uint64{}
	for _, l := range o.log {
		if l.c.server.Port() != p.Port || l.event >= events {
			continue
		}
		requests++
		accesses += uint64(len(l.r.keys))
		if l.t/1e9 > s.T/1e9-60 {
			window[l.r.command]++
		}
	}
	if p.Requests != requests || p.Accesses != accesses {
		return fmt.Errorf("%d requests, %d accesses; want %d, %d", p.Requests, p.Accesses, requests, accesses)
	}
	for id, n := range p.Window {
		if name := s.CommandName(uint16(id)); n != window[name] {
			return fmt.Errorf("command %s in the window: %d; want %d", name, n, window[name])
		}
	}
	return nil
}

// checkEnd checks the last snapshot and that nothing is kept behind it.
func (o *oracle) checkEnd(s *Snapshot) error {
	if a := o.e.asm.Stats(); a.Flows != 0 || a.Entries != 0 || a.Buffered != 0 || a.BufferedBytes != 0 {
		return fmt.Errorf("kept by the assembler: %+v", *a)
	}
	if d := o.e.dec.Stats(); d.Partials != 0 || d.Holds != 0 {
		return fmt.Errorf("kept by the decoder: %+v", *d)
	}
	if err := o.checkSnapshot(s, len(o.s.events)); err != nil {
		return err
	}
	if err := o.checkCounted(s); err != nil {
		return err
	}
	if s.ClockSteps != o.steps {
		return fmt.Errorf("%d clock steps; want %d", s.ClockSteps, o.steps)
	}
	r := s.Report("simulation", 0)
	if _, err := json.Marshal(r); err != nil {
		return err
	}
	if o.s.whole {
		return o.checkWhole(s, r)
	}
	return nil
}

// checkCounted checks that everything was counted that must be.
func (o *oracle) checkCounted(s *Snapshot) error {
	commands := map[string]uint64{}
	got := map[uint16]*PortSnapshot{}
	for i := range s.Ports {
		p := &s.Ports[i]
		got[p.Port] = p
		for id, n := range p.Commands {
			commands[s.CommandName(uint16(id))] += n
		}
	}
	for port, n := range o.must.requests {
		p := got[port]
		if p == nil {
			return fmt.Errorf("port %d is missing", port)
		}
		if p.Requests < uint64(n) || p.Accesses < uint64(o.must.accesses[port]) {
			return fmt.Errorf("port %d: %d requests, %d accesses; certain %d, %d", port, p.Requests, p.Accesses, n, o.must.accesses[port])
		}
		if all := o.may.requests[port]; o.s.exact() && p.Requests != uint64(all) {
			return fmt.Errorf("port %d: %d requests; want %d", port, p.Requests, all)
		}
	}
	for name, n := range o.must.commands {
		if commands[name] < uint64(n) {
			return fmt.Errorf("command %s: %d; certain %d", name, commands[name], n)
		}
	}
	return nil
}

// checkWhole checks the counts of a run that is one window.
func (o *oracle) checkWhole(s *Snapshot, r *report.Report) error {
	got := map[portKey]*report.Key{}
	for i := range r.Keys {
		k := &r.Keys[i]
		raw := k.Raw()
		id, err := o.key(raw, max(k.KeyBytes, int64(len(raw))))
		if err != nil {
			return err
		}
		pk := portKey{k.Port, id}
		if got[pk] != nil {
			return fmt.Errorf("key %q twice", k.Key)
		}
		got[pk] = k
		if most := o.may.keys[pk]; k.Accesses > uint64(most) || o.s.exact() && k.Accesses != uint64(most) || k.AccessesError != 0 {
			return fmt.Errorf("key %q: %d accesses, error %d; sent %d", k.Key, k.Accesses, k.AccessesError, most)
		}
	}
	for pk, least := range o.must.keys {
		if k := got[pk]; k == nil || k.Accesses < uint64(least) {
			return fmt.Errorf("key %q: %+v; certain %d", o.s.keys[pk.key], k, least)
		}
	}
	if int(r.DistinctKeys) != len(got) {
		return fmt.Errorf("%d distinct keys; reported %d", r.DistinctKeys, len(got))
	}
	if !o.s.exact() {
		return nil
	}
	return errors.Join(o.checkDetails(got))
}
