package topk

import (
	"math/rand/v2"

	"github.com/axiomhq/hyperloglog"
)

// Bounds of a Counter.
const (
	// DefaultMaxKeys distinct keys are counted exactly.
	DefaultMaxKeys = 1_000_000
	// maxKeyArena bounds the text of all keys; a million keys of 30 bytes take
	// an eighth of it. Reaching it has the effect of reaching MaxKeys.
	maxKeyArena = 256 << 20
	// victimSteps bounds the search for a small key in a full Counter.
	victimSteps = 64
	entryChunk  = 4096
)

// Counter counts the accesses of a whole input, as one window: exactly for up
// to Config.MaxKeys distinct keys, and beyond that by Space-Saving, with a bound
// of the error per key. Its memory grows with the keys, up to about 150 MB for a
// million keys of 30 bytes and never more than 420 MB (88 bytes a key, 256 MiB
// of key text, 16 MB of index, 34 MB of details). Details beyond one command
// and one client per key are kept for the 65,536 most accessed keys that need
// them. Used by one goroutine.
type Counter struct {
	cfg    Config
	rules  *RuleSet
	seed   uint64
	weight uint64

	all            tally
	request, reply uint64
	from, to       int64

	index   []uint64 // tag << 32 | entry + 1; linear probing
	chunks  []*[entryChunk]counterEntry
	n       int // entries in use
	arena   arena
	extras  extras
	hand    uint32
	floor   uint64 // no evicted key had more accesses than this
	level   uint64 // keys with at most this many accesses are fair game
	lowest  uint64 // least count met in this round of the hand
	evicted []uint64
	sketch  *hyperloglog.Sketch
	stats   Counters
}

// counterEntry is one key. 96 bytes.
type counterEntry struct {
	hash           uint64
	count          uint64 // accesses surely of this key, scaled
	errors         uint64 // accesses it may have had before it got this entry
	writes         uint64
	request, reply uint64
	client         [16]byte // the only client while extra is 0
	key            keyRef
	keyLen         uint32 // full length
	extra          uint32 // extra + 1
	gen            uint16
	command        uint16 // the only command while extra is 0
	flags          uint8
}

const (
	counterPartial   = 1 << iota // lost its extra at some time
	counterEstimated             // reply is partly shared out
)

// NewCounter returns an empty Counter.
func NewCounter(cfg Config) *Counter {
	c := &Counter{cfg: cfg.withDefaults(), weight: 1, level: 1, lowest: ^uint64(0), sketch: hyperloglog.NewNoSparse()}
	c.rules = c.cfg.Rules
	if c.seed = c.cfg.Seed; c.seed == 0 {
		c.seed = rand.Uint64()
	}
	c.index = make([]uint64, 1024)
	if c.rules != nil {
		c.evicted = make([]uint64, len(c.rules.groups))
	}
	return c
}

// SetSampleEvery says that the caller hands in one access in n from now on.
func (c *Counter) SetSampleEvery(n int) { c.weight = uint64(min(max(n, 1), MaxSampleEvery)) }

// Add counts an access. It allocates only when it meets new keys.
func (c *Counter) Add(a *Access) Handle {
	c.see(a)
	h := hashKey(a.Key, a.KeyLen, c.seed)
	i := c.find(h)
	if i < 0 {
		i = c.insert(h, a)
	}
	e := c.entry(i)
	e.count += c.weight
	if a.Write {
		e.writes += c.weight
	}
	e.request += uint64(max(a.Bytes, 0)) * c.weight
	if e.extra != 0 {
		c.extras.at(e.extra).add(&c.extras, a, c.weight)
	} else if a.Command != e.command || a.Client != e.client {
		c.addExtra(e, a)
	}
	return Handle(i)<<counterGenBits | Handle(e.gen)
}

// see adds the access to the totals.
func (c *Counter) see(a *Access) {
	if c.all.n == 0 || a.T < c.from {
		c.from = a.T
	}
	if c.all.n == 0 || a.T > c.to {
		c.to = a.T
	}
	c.all.n++
	c.all.w += c.weight
	c.all.q += c.weight * c.weight
	c.request += uint64(max(a.Bytes, 0)) * c.weight
	c.stats.Seen++
	c.stats.Sampled++
	c.stats.Accesses += c.weight
}

// AddReply adds reply bytes to the access that h names.
func (c *Counter) AddReply(h Handle, bytes int64, estimated bool) {
	if h == 0 || bytes <= 0 {
		return
	}
	c.reply += uint64(bytes) * c.weight
	i := int(h >> counterGenBits)
	if i >= c.n {
		return
	}
	if e := c.entry(i); e.gen == uint16(h&counterGenMask) {
		e.reply += uint64(bytes) * c.weight
		if estimated {
			e.flags |= counterEstimated
		}
	}
}

// Handles have the entry in the upper 20 bits.
const (
	counterGenBits = 12
	counterGenMask = 1<<counterGenBits - 1
)

func (c *Counter) entry(i int) *counterEntry {
	return &c.chunks[uint(i)/entryChunk][uint(i)%entryChunk]
}

// find returns the entry of h or -1.
func (c *Counter) find(h uint64) int {
	mask := uint64(len(c.index) - 1)
	for p := h & mask; ; p = (p + 1) & mask {
		s := c.index[p]
		if s == 0 {
			return -1
		}
		if s>>32 == h>>32 {
			if i := int(uint32(s)) - 1; c.entry(i).hash == h {
				return i
			}
		}
	}
}

// insert makes an entry for a key that has none.
func (c *Counter) insert(h uint64, a *Access) int {
	c.sketch.InsertHash(h)
	var i int
	if c.n < c.cfg.MaxKeys && !c.arena.full(len(a.Key)) {
		i = c.n
		if i%entryChunk == 0 {
			c.chunks = append(c.chunks, new([entryChunk]counterEntry))
		}
		c.n++
		if 2*c.n > len(c.index) {
			c.grow()
		}
	} else {
		i = c.evict()
	}
	e := c.entry(i)
	gen := e.gen%counterGenMask + 1
	*e = counterEntry{hash: h, errors: c.floor, gen: gen, command: a.Command, client: a.Client}
	e.key = c.arena.put(a.Key)
	e.keyLen = uint32(min(max(a.KeyLen, int64(len(a.Key))), 1<<32-1))
	c.place(h, i)
	return i
}

func (c *Counter) place(h uint64, i int) {
	mask := uint64(len(c.index) - 1)
	p := h & mask
	for c.index[p] != 0 {
		p = (p + 1) & mask
	}
	c.index[p] = h>>32<<32 | uint64(i+1)
}

func (c *Counter) grow() {
	c.index = make([]uint64, 2*len(c.index))
	for i := range c.n - 1 { // the newest is placed by the caller
		c.place(c.entry(i).hash, i)
	}
}

// evict frees an entry with a small count and raises the floor to it: a key
// without an entry has had at most floor accesses, which is the error of a key
// that gets one. A hand goes round the entries and takes those at the level of
// the least count of its previous round, so that the choice is as good as the
// exact minimum nearly always; when victimSteps entries are all larger, the
// least of them goes, which only loosens the bound.
func (c *Counter) evict() int {
	best, least := -1, ^uint64(0)
	for range victimSteps {
		i := int(c.hand)
		c.hand++
		if int(c.hand) >= c.n {
			c.hand = 0
			if c.lowest != ^uint64(0) {
				c.level = max(c.level, c.lowest)
				c.lowest = ^uint64(0)
			}
		}
		e := c.entry(i)
		upper := e.count + e.errors
		if upper < least {
			best, least = i, upper
		}
		if upper <= c.level {
			break
		}
		c.lowest = min(c.lowest, upper)
	}
	e := c.entry(best)
	c.floor = max(c.floor, least)
	c.stats.Evicted++
	c.dropExtra(e)
	c.countEvicted(e)
	c.unplace(e.hash)
	c.arena.release(e.key)
	return best
}

// unplace removes h from the index and closes the gap behind it.
func (c *Counter) unplace(h uint64) {
	mask := uint64(len(c.index) - 1)
	p := h & mask
	for {
		s := c.index[p]
		if s == 0 {
			return // not reached: every entry is placed
		}
		if s>>32 == h>>32 && c.entry(int(uint32(s))-1).hash == h {
			break
		}
		p = (p + 1) & mask
	}
	hole := p
	for p = (p + 1) & mask; c.index[p] != 0; p = (p + 1) & mask {
		home := c.entry(int(uint32(c.index[p]))-1).hash & mask
		if (p-home)&mask >= (p-hole)&mask {
			c.index[hole] = c.index[p]
			hole = p
		}
	}
	c.index[hole] = 0
}
