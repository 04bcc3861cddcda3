package topk

import "slices"

// MaxManual bounds the manual entries of one port; more are ignored and counted.
const MaxManual = 1000

// Manual is an entry made by hand.
type Manual struct {
	Key    []byte
	Banned bool  // true: never list the key; false: list it as pinned
	Until  int64 // packet time at which the entry ends, 0 = never
	// Action, Copies and the rest of the advice belong to the caller.
}

type manual struct {
	key    []byte
	banned bool
	until  int64
}

// SetManual replaces all manual entries. A banned key leaves the list at once;
// a pinned one is in every Snapshot until its end, and is judged like any other
// key all the while, so that it stays hot afterwards if it is. For the same key
// a ban wins. It returns how many entries were beyond MaxManual.
func (d *Detector) SetManual(entries []Manual) (refused int) {
	d.manual = make(map[uint64]*manual, min(len(entries), MaxManual))
	for i := range entries {
		m := &entries[i]
		h := hashKey(m.Key, int64(len(m.Key)), d.seed)
		old := d.manual[h]
		if old == nil && len(d.manual) == MaxManual {
			refused++
			continue
		}
		if old != nil && old.banned {
			continue
		}
		d.manual[h] = &manual{key: slices.Clone(m.Key), banned: m.Banned, until: m.Until}
	}
	d.countPinned()
	d.rematch()
	return refused
}

func (d *Detector) countPinned() {
	d.pinned = 0
	for _, m := range d.manual {
		if !m.banned {
			d.pinned++
		}
	}
}

// expireManual drops entries whose time has come, once a second.
func (d *Detector) expireManual(end int64) {
	if len(d.manual) == 0 {
		return
	}
	for h, m := range d.manual {
		if m.until != 0 && end-d.offset >= m.until {
			delete(d.manual, h)
		}
	}
	d.countPinned()
}
