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
	details  []*detail // by number - 1; made in chunks
	idle     []uint8   // free details
	dslot    int       // detail slot being filled
	dgen     int       // client generation being filled
	dturn    int       // slots closed in that generation
	epoch    uint8     // marks keys fed to the filling sketch, never 0
	slotLen  uint32    // slices per detail and distinct slot
	slotAge  uint32    // slices closed in the filling slot

	sampler  Sampler
	kernel   uint32
	weight   uint32
	clusters *clusters // nil until a packet was sampled
	inPacket bool      // between BeginPacket and EndPacket

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
	d.details = make([]*detail, 0, DefaultMaxDetails)
	d.idle = make([]uint8, 0, DefaultMaxDetails)
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
