package topk

import "time"

// Defaults of Config, each with the measurement or rule behind it.
const (
	DefaultThreshold  = 0.02             // share at which one key is worth acting on
	DefaultMinSampled = 10               // fewer accesses say nothing about a share
	DefaultSlowZ      = 2.33             // one-sided 1 % in the slow window
	DefaultFastZ      = 4.0              // the fast window is tested 691,200 times a day
	DefaultFewZ       = 3.09             // full slow window with fewer than FewSampled accesses
	DefaultFewSampled = 3000             // 50 accesses/s over 60 s
	DefaultFastRate   = 50.0             // sampled accesses/s below which the fast rule is off
	DefaultMinStay    = 60 * time.Second // a listed key stays hot at least so long
	DefaultCooldown   = 60 * time.Second // and is cooling so long before it is gone
	DefaultMaxHot     = 100              // truly hot keys of one server are rarely more
	DefaultMaxDetails = 200              // top lists and metrics show at most so many keys
	DefaultTop        = 20               // keys in a Snapshot beside the listed ones
)

// Bounds of Config.
const (
	MinThreshold  = 0.001 // below, table noise (1/4096 of the accesses) is no longer small
	MaxMaxHot     = 1000
	maxCooldown   = time.Hour // bounds the work of one Advance over a gap
	minSlowWindow = 6
)

// Config of a Detector or Counter. The zero value takes every default; a value
// out of its range is moved to the nearest allowed one. A Counter uses
// Threshold, SlowZ, MinSampled, Top, Rules, Seed and MaxKeys.
type Config struct {
	Threshold  float64       // share from which a key is hot; Rule.Share overrides it per key
	MinSampled int           // sampled accesses a key needs before it is judged
	SlowZ      float64       // normal quantile of the slow rule and of reported intervals
	FastZ      float64       // normal quantile of the fast rule
	FewZ       float64       // quantile of the slow rule when a full window holds fewer than FewSampled
	FewSampled int           // see FewZ
	FastRate   float64       // sampled accesses/s below which the fast rule is off
	Window     time.Duration // slow window, whole seconds, 6..60
	FastWindow time.Duration // fast window, multiple of 250 ms, 1..5 s
	MinStay    time.Duration // least time as hot
	Cooldown   time.Duration // time as cooling before the key leaves the list
	MaxHot     int           // entries of the list, at most MaxMaxHot
	Top        int           // keys in a Snapshot beside the listed ones
	Rules      *RuleSet      // nil: the threshold for every key
	// Seed of the hash and of the samplers. 0: random per Detector, so that key
	// names chosen by an attacker cannot be aimed at one set of the table. Set it
	// for tests and wherever a replay must give the same bytes.
	Seed uint64
	// MaxDetails is how many keys a Detector follows with clients, commands and
	// bytes, 4 KB each; 0: 200. It is rounded down to a multiple of 25.
	MaxDetails int
	// MaxKeys is how many distinct keys a Counter counts exactly; 0: 1,000,000.
	MaxKeys int
}

func (c Config) withDefaults() Config {
	c.Threshold = clampOr(c.Threshold, DefaultThreshold, MinThreshold, 1)
	c.MinSampled = clampOr(c.MinSampled, DefaultMinSampled, 1, 1<<20)
	c.SlowZ = clampOr(c.SlowZ, DefaultSlowZ, 0.5, 8)
	c.FastZ = clampOr(c.FastZ, DefaultFastZ, 0.5, 8)
	c.FewZ = clampOr(c.FewZ, max(DefaultFewZ, c.SlowZ), c.SlowZ, 8)
	c.FewSampled = clampOr(c.FewSampled, DefaultFewSampled, 1, 1<<30)
	c.FastRate = clampOr(c.FastRate, DefaultFastRate, 1, 1e9)
	c.Window = clampOr(c.Window.Truncate(time.Second), maxSlowSeconds*time.Second, minSlowWindow*time.Second, maxSlowSeconds*time.Second)
	c.FastWindow = clampOr(c.FastWindow.Truncate(sliceNanos), maxFastSlices*sliceNanos, time.Second, maxFastSlices*sliceNanos)
	c.MinStay = clampOr(c.MinStay, DefaultMinStay, time.Second, maxCooldown)
	c.Cooldown = clampOr(c.Cooldown, DefaultCooldown, time.Second, maxCooldown)
	c.MaxHot = clampOr(c.MaxHot, DefaultMaxHot, 1, MaxMaxHot)
	c.Top = clampOr(c.Top, DefaultTop, 1, entries)
	c.MaxDetails = clampOr(c.MaxDetails, DefaultMaxDetails, 2*detailChunk, DefaultMaxDetails) / detailChunk * detailChunk
	c.MaxKeys = clampOr(c.MaxKeys, DefaultMaxKeys, 16, DefaultMaxKeys)
	return c
}

func clampOr[T int | float64 | time.Duration](v, def, lo, hi T) T {
	if v == 0 {
		v = def
	}
	return min(max(v, lo), hi)
}
