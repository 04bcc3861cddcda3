package pipeline

import (
	"fmt"
	"math"

	"github.com/hotsniff/hotsniff/topk"
)

type listedKey struct {
	port uint16
	key  string
}

// listedState is what the events said of a key that is on the list.
type listedState struct {
	kind topk.EventKind
	t    int64
}

const simThreshold = topk.DefaultThreshold

// onEvents checks list changes: their order, and in exact runs their figures.
func (o *oracle) onEvents(events []Event) {
	for i := range events {
		ev := &events[i]
		o.lines = fmt.Appendf(o.lines, "%d %s %d %q %v\n", ev.T, ev.Kind, ev.Port, ev.Key, ev.Share)
		if err := o.checkEvent(ev); err != nil {
			o.check(fmt.Errorf("%s of %q: %w (%+v)", ev.Kind, ev.Key, err, ev.Event))
		}
	}
}

func (o *oracle) checkEvent(ev *Event) error {
	id, err := o.key(ev.Key, ev.KeyLen)
	if err != nil {
		return err
	}
	if sent := o.may.keys[portKey{ev.Port, id}]; sent < topk.DefaultMinSampled {
		return fmt.Errorf("%d accesses in all", sent)
	}
	name := listedKey{ev.Port, string(ev.Key)}
	was, listed := o.list[name]
	stay, cooldown := int64(topk.DefaultMinStay), int64(topk.DefaultCooldown)
	if o.detector.MinStay > 0 {
		stay, cooldown = int64(o.detector.MinStay), int64(o.detector.Cooldown)
	}
	ok := false
	switch ev.Kind {
	case topk.EventHot:
		ok = !listed || was.kind == topk.EventCooling && ev.T >= was.t
	case topk.EventCooling:
		ok = listed && was.kind == topk.EventHot && ev.T-was.t >= stay && ev.Share < simThreshold/2
	case topk.EventGone:
		ok = listed && was.kind == topk.EventCooling && ev.T-was.t >= cooldown
	}
	if !ok {
		return fmt.Errorf("after %v of %d (listed %v)", was.kind, was.t, listed)
	}
	o.list[name] = listedState{ev.Kind, ev.T}
	if ev.Kind == topk.EventGone {
		delete(o.list, name)
	}
	if o.s.exact() {
		return o.checkShare(ev, id)
	}
	return nil
}

// checkShare compares the share in an event with that in the exact window that
// ended then; a key must not become hot below the threshold.
func (o *oracle) checkShare(ev *Event, id int) error {
	from := ev.T - 60e9
	if ev.WindowSeconds == 5 {
		from = ev.T - 5e9
		if (ev.T-o.begin(ev.Port))%250e6 != 0 {
			from += 125e6 // half a slice is still to come
		}
	}
	w := o.window(ev.Port, from, ev.T, o.next)
	share := float64(w.accesses[id]) / math.Max(float64(w.all), 1)
	if ev.Share > share+1e-9 || ev.ShareHigh < share-1e-9 {
		return fmt.Errorf("true share %v", share)
	}
	if low := lowerBound(share, float64(w.all), topk.DefaultSlowZ); ev.Kind == topk.EventHot && (low < simThreshold-1e-9 || w.accesses[id] < topk.DefaultMinSampled) {
		return fmt.Errorf("%d of %d accesses, lower bound %v", w.accesses[id], w.all, low)
	}
	return nil
}

// begin is the time from which a port's slices and seconds are counted.
func (o *oracle) begin(port uint16) int64 {
	for _, l := range o.log {
		if l.c.server.Port() == port && len(l.r.keys) > 0 {
			return l.t
		}
	}
	return 0
}

// lowerBound is the lower bound of the Wilson interval, written as in the paper.
func lowerBound(p, n, z float64) float64 {
	return (p + z*z/(2*n) - z*math.Sqrt((p*(1-p)+z*z/(4*n))/n)) / (1 + z*z/n)
}

// checkListed checks that the list agrees with the events, and that every key
// is hot which at the last full second qualified by the strictest rule: the
// bound at z = 3.09 lowered for the skew of small counts, ten accesses, and a
// tenth of them outside the largest second.
func (o *oracle) checkListed(p *PortSnapshot, events int) error {
	hot := map[string]bool{}
	listed := 0
	for i := range p.Slow.Keys {
		k := &p.Slow.Keys[i]
		ev, ok := o.list[listedKey{p.Port, string(k.Key)}]
		if isListed := k.State == topk.StateHot || k.State == topk.StateCooling; isListed != ok || isListed && (k.State == topk.StateHot) != (ev.kind == topk.EventHot) {
			return fmt.Errorf("key %q is %s, by the events %v (%v)", k.Key, k.State, ev.kind, ok)
		}
		if k.State == topk.StateHot {
			hot[string(k.Key)] = true
		}
		if k.Since != 0 {
			listed++
		}
	}
	begin := o.begin(p.Port)
	second := begin + (p.Slow.T-begin)/1e9*1e9
	if second-begin < 5e9 {
		return nil
	}
	w := o.window(p.Port, second-60e9, second, events)
	for id, n := range w.accesses {
		const z = topk.DefaultFewZ
		share := float64(n)/math.Max(float64(w.all), 1) - ((z*z-1)/6+0.5)/math.Max(float64(w.all), 1)
		if n < topk.DefaultMinSampled || share <= 0 || lowerBound(share, float64(w.all), z) < simThreshold+1e-9 || !w.spread(id, begin) {
			continue
		}
		if !hot[string(o.s.keys[id][:min(len(o.s.keys[id]), 1024)])] {
			return fmt.Errorf("key %q is not hot with %d of %d accesses", o.s.keys[id], n, w.all)
		}
	}
	return nil
}

// spread reports whether a tenth of a key's accesses lie outside its largest
// second.
func (w *simWindow) spread(id int, begin int64) bool {
	perSecond := map[int64]uint64{}
	largest := uint64(0)
	for _, l := range w.entries {
		for _, k := range l.r.keys {
			if k == id {
				second := (l.t - begin) / 1e9
				perSecond[second]++
				largest = max(largest, perSecond[second])
			}
		}
	}
	return 10*(w.accesses[id]-largest) >= w.accesses[id]
}
