package topk

// Add counts an access. It does not allocate for tracked keys and copies key
// bytes only for keys that may be reported. It advances the windows when a.T
// passes the end of a tick.
func (d *Detector) Add(a *Access) Handle {
	if t := a.T + d.offset; uint64(t-d.floor) >= d.span {
		d.turn(a.T)
	} else if t > d.now {
		d.now = t
	}
	d.stats.Seen++
	h := hashKey(a.Key, a.KeyLen, d.seed)
	if !d.sampler.Take() {
		d.distinct.insert(h)
		d.skippedAt = d.now
		return 0
	}
	w := d.weight
	c := &d.win.fast[d.win.fcol]
	if d.win.closed+c.w+uint64(w) > maxWindowWeight {
		d.stats.Saturated++
		return 0
	}
	c.count(uint64(max(a.Bytes, 0)), uint64(w))

	t := d.t
	e := t.find(h)
	if e < 0 {
		e = d.admit(h, a)
	}
	t.total[e] += w
	t.fast[d.win.fcol][e] += w
	if d.inPacket {
		d.clusters.add(e, w)
	}
	m := &t.meta[e]
	if m.epoch != d.epoch {
		m.epoch = d.epoch
		d.distinct.insert(h)
	}
	if m.flags&flagKey == 0 && t.total[e]-t.inherited[e] > w {
		d.keep(e, a)
	}
	if d.groups.on {
		d.countGroup(e, a, w)
	}
	if m.detail != 0 {
		d.detail(m.detail).add(a, w, d.dslot, d.dgen)
	}
	if a.Bytes >= heatUnit {
		t.heat[e] += heatOf(a.Bytes, w)
	}
	return t.handle(e)
}

// admit gives the least entry of the set to a key that has none. While nothing
// is crowded out, the key's text and details are kept from its first access.
func (d *Detector) admit(h uint64, a *Access) int {
	t := d.t
	e := t.victim(h)
	m := &t.meta[e]
	crowded := t.total[e] != 0
	if crowded {
		d.stats.Evicted++
		d.evictedAt = d.now
	}
	if m.detail != 0 {
		d.dropDetail(e)
	}
	t.take(e, h, d.win.slice, d.win.fcol, d.win.scol)
	if d.clusters != nil {
		d.clusters.take(e)
	}
	if !crowded {
		if len(t.keys.free) > keySpare || m.key != 0 {
			t.keys.set(m, e, a.Key, a.KeyLen)
		}
		d.takeDetail(e)
	}
	d.matchNew(m, h, a, crowded)
	return e
}

// keep stores the text of a key from its second access on.
func (d *Detector) keep(e int, a *Access) {
	t := d.t
	if t.total[e]-t.inherited[e] < t.keys.bar {
		return
	}
	t.keys.set(&t.meta[e], e, a.Key, a.KeyLen)
}

func heatOf(bytes int64, w uint32) uint32 {
	// A saturating sum is not worth its cost: 2^26 of 64 B units per access at
	// weight 1 leave room for sixty in a row, and decay takes a thirty-second
	// a second. Wrapping only costs a rank.
	return uint32(min(uint64(bytes)/heatUnit*uint64(w), 1<<26))
}

// AddReply adds reply bytes to the access that h names. estimated marks bytes
// that were shared out over several requests. Bytes count with the weight now
// in force.
func (d *Detector) AddReply(h Handle, bytes int64, estimated bool) {
	if h == 0 || bytes <= 0 || d.t == nil {
		return
	}
	d.win.fast[d.win.fcol].reply += uint64(bytes) * uint64(d.weight)
	e := d.t.entry(h)
	if e < 0 {
		return
	}
	d.t.heat[e] += heatOf(bytes, d.weight)
	if m := &d.t.meta[e]; m.detail != 0 {
		s := &d.detail(m.detail).slots[d.dslot]
		s.reply += uint64(bytes) * uint64(d.weight)
		s.estimated = s.estimated || estimated
	}
}

// detail returns the detail with the given number (1..MaxDetails).
func (d *Detector) detail(n uint8) *detail {
	return d.details[n-1]
}

// takeDetail gives entry e a free detail, making a chunk of them if there are
// fewer than MaxDetails.
func (d *Detector) takeDetail(e int) bool {
	if len(d.idle) == 0 {
		if len(d.details) >= d.cfg.MaxDetails {
			return false
		}
		chunk := new([detailChunk]detail)
		for i := range chunk {
			d.details = append(d.details, &chunk[i])
			d.idle = append(d.idle, uint8(len(d.details)))
		}
	}
	n := d.idle[len(d.idle)-1]
	d.idle = d.idle[:len(d.idle)-1]
	d.detail(n).reset(e)
	d.t.meta[e].detail = n
	return true
}

func (d *Detector) dropDetail(e int) {
	m := &d.t.meta[e]
	d.detail(m.detail).entry = 0
	d.idle = append(d.idle, m.detail)
	m.detail = 0
}
