package topk

import (
	"slices"
	"time"
)

// addListed appends the listed and pinned keys that are not there yet.
func (d *Detector) addListed(snap *Snapshot, s *scope) {
	have := make(map[uint64]bool, len(snap.Keys))
	for i := range snap.Keys {
		have[snap.Keys[i].Hash] = true
	}
	add := func(h uint64, key []byte, keyLen int64) {
		if !have[h] {
			have[h] = true
			snap.Keys = append(snap.Keys, d.listedStat(h, key, keyLen, s))
		}
	}
	for _, l := range d.list {
		add(l.hash, l.key, l.keyLen)
	}
	for h, m := range d.manual {
		if !m.banned {
			add(h, m.key, int64(len(m.key)))
		}
	}
}

// listedStat fills in a listed key, which may have lost its entry.
func (d *Detector) listedStat(h uint64, key []byte, keyLen int64, s *scope) KeyStat {
	k := KeyStat{Key: slices.Clone(key), KeyLen: keyLen, Truncated: keyLen > int64(len(key)), Hash: h}
	if d.t != nil {
		if e := d.t.find(h); e >= 0 {
			return d.keyStat(e, s, key, keyLen)
		}
		k.AccessesError = min(d.t.foreign(int(h%sets)*ways), s.all.w)
	}
	est := estimateShare(0, 0, k.AccessesError, &s.all.tally)
	if s.all.extra > 0 {
		est.cluster(0, &s.all.tally)
	}
	k.ShareLow, k.ShareHigh = est.bounds(&s.all.tally, s.z)
	k.setRule(d.rules.Find(key))
	d.setState(&k)
	return k
}

func (d *Detector) groupStats(s *scope) []GroupStat {
	if !d.groups.on {
		return nil
	}
	all := d.win.slowTally()
	out := make([]GroupStat, d.groups.n)
	for i, name := range d.rules.groups {
		n := d.groups.sum(i, d.win.slowN)
		out[i] = GroupStat{Name: name, Accesses: n}
		if all.w > 0 {
			out[i].Share = min(float64(n)/float64(all.w), 1)
		}
		out[i].Rate = float64(n) / (float64(max(d.now-d.from(WindowSlow), int64(sliceNanos))) / 1e9)
	}
	return out
}

// countDistinct counts the keys with accesses in the slow window: exactly while
// no key was crowded out or passed over, else by the sketches, once a second.
func (d *Detector) countDistinct() (n uint64, exact bool) {
	window := int64(d.win.slowN) * int64(time.Second)
	if (d.stats.Evicted == 0 || d.now-d.evictedAt > window) && (d.skippedAt == 0 || d.now-d.skippedAt > window) {
		for e := range d.t.total {
			if d.t.total[e] > 0 {
				n++
			}
		}
		return n, true
	}
	if !d.distinctOK || d.now-d.distinctAt >= int64(time.Second) {
		d.distinctOK, d.distinctAt = true, d.now
		d.distinctN = d.distinct.estimate(d.oldestSlot())
	}
	return d.distinctN, false
}

// oldestSlot is the part of the oldest sketch that is in the window.
func (d *Detector) oldestSlot() float64 {
	filling := float64(d.slotAge) + float64(d.tick%ticksPerSlice)/float64(ticksPerSlice)
	window := float64(d.win.slowN * slicesPerSec)
	return (window - float64(detailSlots-2)*float64(d.slotLen) - filling) / float64(d.slotLen)
}
