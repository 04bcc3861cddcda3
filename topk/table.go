package topk

import "github.com/zeebo/xxh3"

// Shape of the table. 4,096 keys bound the count error of any key by about
// 1/4096 of the window (0.03 % measured), a hundred times below the threshold.
const (
	sets    = 512
	ways    = 8 // one cache line of hashes
	entries = sets * ways

	maxSlowSeconds = 60 // columns of one second
	maxFastSlices  = 20 // columns of 250 ms
	slicesPerSec   = 4

	// MaxKeyBytes is how much of a key is hashed and, for reported keys, kept.
	// Longer keys are told apart by this prefix and their length.
	MaxKeyBytes = 1024
)

// Flags of an entry.
const (
	flagKey      = 1 << iota // key bytes are stored
	flagOverflow             // refused by the full list since it last fell below its threshold
)

// meta is what an entry needs beside its counts. 20 bytes.
type meta struct {
	born     uint32 // slice in which the key took the entry
	baseFast uint32 // count of the entry's former keys in that slice
	baseSlow uint32 // and in that second
	gen      uint16 // changes with every key; part of the Handle
	key      uint16 // key slot + 1
	detail   uint8  // detail + 1
	rule     uint8  // ruleUnknown, ruleNone or rule index + ruleFirst
	flags    uint8
	epoch    uint8 // distinct-key slot in which the key was last fed to the sketch
}

// table counts keys by Space-Saving inside sets of eight entries. Counts are
// kept per slice of time, column by column, so that the column in use stays in
// the first cache level and a window is a sum of columns.
//
// total is the sum of all cells of an entry that are in the slow window.
// inherited is the part of it counted for former keys of the entry, so a key's
// own count is exactly total-inherited, and its true count is at most total:
// while a key has no entry it has no more accesses than the least entry of its
// set. inherited reaches zero when the column of its birth leaves the window.
type table struct {
	hash      [entries]uint64
	total     [entries]uint32
	inherited [entries]uint32
	fastTotal [entries]uint32 // cells of the closed slices of the fast window
	heat      [entries]uint32 // decaying bytes / 64, ranks keys for byte details
	meta      [entries]meta
	fast      [maxFastSlices][entries]uint32
	slow      [maxSlowSeconds][entries]uint32
	keys      keyStore
}

// hashKey hashes a key as it is identified. It never returns 0, which marks an
// unused entry.
func hashKey(key []byte, keyLen int64, seed uint64) uint64 {
	if len(key) > MaxKeyBytes {
		key = key[:MaxKeyBytes]
	}
	h := xxh3.HashSeed(key, seed)
	if keyLen > int64(len(key)) {
		h ^= mix64(uint64(keyLen) + seed)
	}
	if h == 0 {
		return 1
	}
	return h
}

// find returns the entry of h or -1. All eight hashes are compared: where a key
// sits is as good as random, and a branch mispredicted costs more than the rest.
func (t *table) find(h uint64) int {
	base := int(h%sets) * ways
	set := (*[ways]uint64)(t.hash[base:])
	at := -1
	for i := 0; i < ways; i += 4 {
		s := (*[4]uint64)(set[i:])
		if s[0] == h {
			at = i
		}
		if s[1] == h {
			at = i + 1
		}
		if s[2] == h {
			at = i + 2
		}
		if s[3] == h {
			at = i + 3
		}
	}
	if at < 0 {
		return -1
	}
	return base + at
}

// victim returns the entry with the least count in the set of h.
func (t *table) victim(h uint64) int {
	base := int(h%sets) * ways
	set := (*[ways]uint32)(t.total[base:])
	return base + leastOf(set)
}

// leastOf returns the index of the least of eight counts, without branches: the
// index rides in the low bits.
func leastOf(c *[8]uint32) int {
	a := min(uint64(c[0])<<3, uint64(c[1])<<3|1)
	b := min(uint64(c[2])<<3|2, uint64(c[3])<<3|3)
	d := min(uint64(c[4])<<3|4, uint64(c[5])<<3|5)
	e := min(uint64(c[6])<<3|6, uint64(c[7])<<3|7)
	return int(min(a, b, d, e) & 7)
}

// take gives entry e to the key h. Its cells stay: they are the bound on what h
// may have had before.
func (t *table) take(e int, h uint64, slice uint32, fastCol, slowCol int) {
	t.hash[e] = h
	t.inherited[e] = t.total[e]
	t.heat[e] = 0
	m := &t.meta[e]
	m.born = slice
	m.baseFast = t.fast[fastCol][e]
	m.baseSlow = t.slow[slowCol][e] + m.baseFast
	m.gen++
	if m.gen == 0 {
		m.gen = 1
	}
	m.rule = ruleUnknown
	m.flags = 0
	m.epoch = 0
}

func (t *table) handle(e int) Handle {
	return Handle(e)<<16 | Handle(t.meta[e].gen)
}

// entry resolves a handle, -1 when the entry has another key now.
func (t *table) entry(h Handle) int {
	e := int(h >> 16)
	if h == 0 || e >= entries || t.meta[e].gen != uint16(h) {
		return -1
	}
	return e
}

// own returns the accesses surely of the entry's key in the slow window.
func (t *table) own(e int) uint32 { return t.total[e] - t.inherited[e] }
