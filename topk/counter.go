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
