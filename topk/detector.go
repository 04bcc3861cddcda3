package topk

import (
	"math/rand/v2"
	"time"
)

const (
	// maxBackstep is how far behind the newest packet a packet may be and still
	// count in the filling slice: merged interfaces and reordered captures. A
	// larger step back is taken for a change of the clock.
	maxBackstep = int64(2 * time.Second)
	// MaxSampleEvery bounds 1/N, so that weights stay far from overflow.
	MaxSampleEvery = 1 << 16
	// maxEvents is how many list changes are kept for Events; the oldest are
	// dropped and counted. A caller that drains once a tick never comes near.
	maxEvents = 4096
)

// Detector finds the keys that take an outsized share of the accesses of one
// port. Add, AddReply, Advance, Events and Snapshot belong to one goroutine;
// the Snapshots are for everyone. A Detector that never saw an access has no
// table and costs nothing.
type Detector struct {
	cfg   Config
	rules *RuleSet
	seed  uint64

	// Clock. Internal time is packet time + offset and never goes back.
	floor  int64 // accesses from here
	span   uint64
	now    int64 // newest time seen
	start  int64 // time of the first access or Advance
	base   int64 // time of tick 0
	tick   int64 // ticks completed
	offset int64
	begun  bool

	t        *table
	win      rings
	distinct distinct
	details  []*[detailChunk]detail
	idle     []uint8 // free details
	dslot    int     // detail slot being filled
	dgen     int     // client generation being filled
	dturn    int     // slots closed in that generation
	epoch    uint8   // marks keys fed to the filling sketch, never 0
	slotLen  uint32  // slices per detail and distinct slot
	slotAge  uint32  // slices closed in the filling slot

	sampler Sampler
	kernel  uint32
	weight  uint32

	list       []*listed
	manual     map[uint64]*manual
	pinned     int // manual entries that are not bans
	groups     groups
	events     []Event
	stats      Counters
	distinctN  uint64
	distinctAt int64
	distinctOK bool
	evictedAt  int64 // when a key with accesses in the window last lost its entry
	skippedAt  int64 // when an access was last passed over by the event sampler
}

// New returns a Detector.
func New(cfg Config) *Detector {
	d := &Detector{kernel: 1, weight: 1}
	d.configure(cfg)
	d.seed = d.cfg.Seed
	if d.seed == 0 {
		d.seed = rand.Uint64()
	}
	d.sampler.state = d.seed
	d.win.init(int(d.cfg.Window/time.Second), int(d.cfg.FastWindow/sliceNanos))
	// Twelve slots cover the slow window.
	d.slotLen = uint32((d.win.slowN*slicesPerSec + detailSlots - 2) / (detailSlots - 1))
	d.epoch = 1
	return d
}

func (d *Detector) configure(cfg Config) {
	d.cfg = cfg.withDefaults()
	d.rules = d.cfg.Rules
	d.groups.init(d.rules)
}

// Reconfigure replaces thresholds, rules and limits, for instance after a
// reload, and keeps all counts. Window lengths and Seed stay as they are.
func (d *Detector) Reconfigure(cfg Config) {
	cfg.Window, cfg.FastWindow, cfg.Seed = d.cfg.Window, d.cfg.FastWindow, d.cfg.Seed
	d.configure(cfg)
	if d.t != nil {
		for e := range d.t.meta {
			d.t.meta[e].rule = ruleUnknown
		}
	}
	d.rematch()
}

// open makes the table on the first access.
func (d *Detector) open() {
	d.t = new(table)
	d.t.keys.init()
	d.distinct.init()
}

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
	if d.win.weight+uint64(w) > maxWindowWeight {
		d.stats.Saturated++
		return 0
	}
	d.count(a, w)

	t := d.t
	e := t.find(h)
	if e < 0 {
		e = d.admit(h, a)
	}
	t.total[e] += w
	t.fast[d.win.fcol][e] += w
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

// count adds the access to the totals of the filling slice.
func (d *Detector) count(a *Access, w uint32) {
	c := &d.win.fast[d.win.fcol]
	c.w += uint64(w)
	c.q += uint64(w) * uint64(w)
	c.n++
	c.request += uint64(max(a.Bytes, 0)) * uint64(w)
	d.win.weight += uint64(w)
	d.stats.Sampled++
	d.stats.Accesses += uint64(w)
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

// SetSampleEvery says that the caller now hands in one access in n: kernel
// sampling. Later accesses count n times; nothing is skipped here.
func (d *Detector) SetSampleEvery(n int) {
	d.kernel = uint32(min(max(n, 1), MaxSampleEvery))
	d.setWeight()
}

// SetEventSampleEvery makes Add itself pass over all but one access in n,
// chosen at random, after it was counted as a distinct key. Both rates multiply.
func (d *Detector) SetEventSampleEvery(n int) {
	d.sampler.SetEvery(n)
	d.setWeight()
}

func (d *Detector) setWeight() {
	d.weight = uint32(min(uint64(d.kernel)*uint64(d.sampler.Every()), MaxSampleEvery))
}

// detail returns the detail with the given number (1..maxDetails).
func (d *Detector) detail(n uint8) *detail {
	i := int(n) - 1
	return &d.details[i/detailChunk][i%detailChunk]
}

// takeDetail gives entry e a free detail, making a chunk of them if there are
// fewer than maxDetails.
func (d *Detector) takeDetail(e int) bool {
	if len(d.idle) == 0 {
		have := len(d.details) * detailChunk
		if have == maxDetails {
			return false
		}
		d.details = append(d.details, new([detailChunk]detail))
		for n := have + detailChunk; n > have; n-- {
			d.idle = append(d.idle, uint8(n))
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

// plausibleTime keeps arithmetic on hostile timestamps inside int64: times
// before 1970 and after 2116 are moved to these.
func plausibleTime(t int64) int64 { return min(max(t, 0), 1<<62) }
