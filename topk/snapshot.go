package topk

import (
	"bytes"
	"cmp"
	"time"
)

// HistorySeconds is how many one-second counts KeyStat.History has at most.
const HistorySeconds = maxSlowSeconds

// Counters are totals since the Detector or Counter was made.
type Counters struct {
	Seen          uint64 // accesses handed to Add
	Sampled       uint64 // counted
	Accesses      uint64 // counted, scaled to the full traffic
	Evicted       uint64 // keys that lost their entry with accesses in the window
	Saturated     uint64 // accesses beyond 2^32 in one window, not counted
	ClockSteps    uint64 // times the clock was set back by more than 2 s
	Overflow      uint64 // keys that qualified while the list was full
	BecameHot     uint64
	BecameCooling uint64
	BecameGone    uint64
	EventsDropped uint64
}

func (c *Counters) add(t *tally) {
	c.Sampled += t.n
	c.Accesses += t.w
}

// Snapshot is one finished view. It owns all it holds and never changes.
type Snapshot struct {
	T             int64 // packet time of the view
	From          int64 // begin of the window
	WindowSeconds int   // 0: the whole input is the window (Counter)
	Whole         bool  // made by a Counter
	SampleEvery   int   // kernel sampling in force
	EventEvery    int   // event sampling in force; both multiply
	Z             float64

	Accesses        uint64 // in the window, scaled
	SampledAccesses uint64
	RequestBytes    uint64 // scaled
	ReplyBytes      uint64
	Distinct        uint64
	DistinctExact   bool // counted, not estimated

	// Keys has the top keys of the window and every listed or pinned key, sorted
	// by accesses, then key.
	Keys   []KeyStat
	Groups []GroupStat // in the order of the rules
	Hot    int         // keys listed as hot, cooling or pinned
	Banned int

	Counters Counters
}

// KeyStat is one key of a Snapshot. Counts are of its window and scaled to the
// full traffic.
type KeyStat struct {
	Key       []byte
	KeyLen    int64 // full length
	Truncated bool  // Key is a prefix; Hash tells keys with the same prefix apart
	Hash      uint64

	State State
	Cause Cause
	Since int64 // when it became hot; 0 if it is not listed

	Share, ShareLow, ShareHigh float64 // bounds at Snapshot.Z
	// Accesses were surely of this key; AccessesError is how many more it may
	// have had while it was not tracked.
	Accesses, AccessesError uint64
	SampledAccesses         float64 // effective number of accesses behind Share
	Rate                    float64 // accesses per second

	// Writes are the accesses by commands that may change the key, Reads all others.
	Reads, Writes       uint64
	RequestBytes        uint64
	ReplyBytes          uint64
	ReplyBytesEstimated bool    // some were shared out over several requests
	BytesShare          float64 // of request and reply bytes of the port
	Commands            []CommandCount
	OtherCommands       uint64 // beyond the 16 told apart per key
	// Detailed says that reads, writes, bytes, commands and clients were
	// followed; Extrapolated that they were not followed for all accesses of the
	// window and are scaled up.
	Detailed, Extrapolated bool

	Clients        int // distinct client addresses, in one to two windows
	TopClient      [16]byte
	TopClientShare float64 // surely its part of the key's accesses

	Rule, Group, Action string
	TTL                 time.Duration
	Copies              int

	History []uint32 // accesses per second, oldest first; the last second is filling
}

// CommandCount is how often one command accessed a key.
type CommandCount struct {
	Command uint16
	Count   uint64
}

// GroupStat is the share of all keys of one rule group.
type GroupStat struct {
	Name     string
	Share    float64
	Accesses uint64
	Rate     float64
}

// CompareKeys is the order of Snapshot.Keys: by accesses, the most first, then key.
func CompareKeys(a, b KeyStat) int {
	return cmp.Or(cmp.Compare(b.Accesses, a.Accesses), bytes.Compare(a.Key, b.Key), cmp.Compare(a.Hash, b.Hash))
}
