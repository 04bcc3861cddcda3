package topk

import "github.com/axiomhq/hyperloglog"

// The distinct keys of the window are counted by a ring of HyperLogLog sketches
// (precision 14: 16 KiB, standard error 0.8 %), each for a twelfth of the
// window, and one that is filling. Dense from the start: the sparse form
// allocates and costs forty times as much per key. Together 14 sketches,
// 230 KB a port.
const distinctSlots = 13

type distinct struct {
	ring  [distinctSlots]*hyperloglog.Sketch
	merge *hyperloglog.Sketch
	cur   *hyperloglog.Sketch
	slot  int
}

func (d *distinct) init() {
	for i := range d.ring {
		d.ring[i] = hyperloglog.NewNoSparse()
	}
	d.merge = hyperloglog.NewNoSparse()
	d.cur = d.ring[0]
}

func (d *distinct) insert(h uint64) { d.cur.InsertHash(h) }

// rotate opens the next slot.
func (d *distinct) rotate() {
	d.slot = (d.slot + 1) % distinctSlots
	d.cur = d.ring[d.slot]
	d.cur.Reset()
}

func (d *distinct) clear() {
	for _, s := range d.ring {
		s.Reset()
	}
}

// estimate returns the distinct keys of a window that covers the filling slot,
// the eleven before it and the given part (0..1) of the oldest. About 1 ms.
func (d *distinct) estimate(oldest float64) uint64 {
	d.merge.Reset()
	for i := 0; i < distinctSlots-1; i++ {
		d.mergeSlot(i)
	}
	without := float64(d.merge.Estimate())
	if oldest <= 0 {
		return uint64(without + 0.5)
	}
	d.mergeSlot(distinctSlots - 1)
	with := float64(d.merge.Estimate())
	return uint64(without + (with-without)*min(oldest, 1) + 0.5)
}

// mergeSlot merges the slot of the given age. Merge fails only for sketches of
// another precision, which do not occur here.
func (d *distinct) mergeSlot(age int) {
	_ = d.merge.Merge(d.ring[(d.slot-age+distinctSlots)%distinctSlots])
}
