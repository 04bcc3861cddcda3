package actions

import (
	"math"
	"math/bits"

	"github.com/hotsniff/hotsniff/hotlist"
)

// Figures is what is known of one hot key when advice is asked for.
type Figures struct {
	Share             float64 // of the accesses of its port, 0 to 1
	ShareLow          float64 // lower confidence bound of Share
	AccessesPerSecond float64 // scaled to the full traffic
	WriteRatio        float64 // writes / accesses, 0 to 1
	ByteShare         float64 // of request and reply bytes of its port, 0 to 1; 0 when unknown
	Clients           int64   // distinct client addresses of the key
	NodeClients       int64   // distinct client addresses of the port; 0 when unknown
	TopClientShare    float64 // share of the key's accesses by its heaviest client, 0 to 1

	Pinned bool // listed by hand
	Rule   Rule // the matching rule's wishes; zero when there is none
}

// Rule is what a rule of the configuration, or a manual entry, wants for a
// key. Zero fields leave the choice to Advise.
type Rule struct {
	Action hotlist.Action
	// ActionSet tells a wish for ActionNone from no wish.
	ActionSet bool
	TTLMs     int64
	Copies    int
}

// Advice is what the list tells applications about a key.
type Advice struct {
	Action hotlist.Action
	Reason hotlist.Reason
	TTLMs  int64 // life of a local copy
	Copies int   // number of copies if the application replicates; 0: copies do not help
}

// AdviceConfig holds the limits between the actions. The zero value means the
// defaults named at the fields.
type AdviceConfig struct {
	WriteRatio     float64 // from here on a key is write-hot; 0.5
	ByteShare      float64 // from here on a key is byte-hot; 0.10
	TopClientShare float64 // from here on one client is the cause; 0.8
	LimitMinRate   float64 // accesses/s below which one client is left alone; 100
	ReplicateRate  float64 // accesses/s from which local copies need help; 100,000
	RatePerCopy    float64 // accesses/s that one copy is meant to take; 5,000
	MaxCopies      int     // 16
	TTLMs          int64   // life of a local copy; 2,000
	MixedTTLMs     int64   // the same for keys with more than a tenth of writes; 500
}

const (
	// mixedWriteRatio: from a tenth of writes on, a copy that lives for two
	// seconds is outdated for most of its life.
	mixedWriteRatio = 0.1
	// minNodeClients: where a port has fewer clients, one of them sending
	// everything is the normal case (one application host, or a proxy).
	minNodeClients = 4
	// minCopies: one copy beside the original is the least that spreads load.
	minCopies = 2
)

func (c AdviceConfig) withDefaults() AdviceConfig {
	setDefault(&c.WriteRatio, 0.5)
	setDefault(&c.ByteShare, 0.10)
	setDefault(&c.TopClientShare, 0.8)
	setDefault(&c.LimitMinRate, 100)
	setDefault(&c.ReplicateRate, 100_000)
	setDefault(&c.RatePerCopy, 5_000)
	setDefault(&c.MaxCopies, 16)
	setDefault(&c.TTLMs, 2_000)
	setDefault(&c.MixedTTLMs, 500)
	return c
}

func setDefault[T int | int64 | float64](p *T, v T) {
	if *p <= 0 {
		*p = v
	}
}

// Advise says what to do with a key. It depends on its arguments only.
//
// The cause that leaves the fewest choices is looked for first: one client
// that sends nearly all the traffic is slowed down, writes cannot be cached
// and are summed, a key that is heavy in bytes or beyond what the network of
// one server carries is spread over copies, and what remains is served from
// the application's memory. A rule overrides the action, ttl and copies; the
// reason stays what the figures say, or manual for pinned keys.
func Advise(cfg AdviceConfig, f Figures) Advice {
	cfg = cfg.withDefaults()
	a := Advice{Action: hotlist.ActionLocalize, Reason: hotlist.ReasonReadHot, TTLMs: cfg.TTLMs}
	if f.WriteRatio > mixedWriteRatio {
		a.TTLMs = min(cfg.MixedTTLMs, cfg.TTLMs)
	}
	readRate := f.AccessesPerSecond * (1 - f.WriteRatio)
	switch {
	case f.Pinned:
		a.Reason = hotlist.ReasonManual
		a.Copies = copies(cfg, readRate)
	case singleClient(cfg, f):
		a.Action, a.Reason = hotlist.ActionLimit, hotlist.ReasonSingleClient
	case f.WriteRatio >= cfg.WriteRatio:
		a.Action, a.Reason = hotlist.ActionAggregate, hotlist.ReasonWriteHot
	case f.ByteShare >= cfg.ByteShare && f.ByteShare > 2*f.Share:
		// A key that takes bytes as it takes accesses is just read often.
		a.Action, a.Reason = hotlist.ActionReplicate, hotlist.ReasonByteHot
		a.Copies = copies(cfg, readRate)
	case f.AccessesPerSecond >= cfg.ReplicateRate:
		a.Action = hotlist.ActionReplicate
		a.Copies = copies(cfg, readRate)
	default:
		a.Copies = copies(cfg, readRate)
	}
	return override(a, f.Rule, cfg, readRate)
}

func override(a Advice, r Rule, cfg AdviceConfig, readRate float64) Advice {
	if r.ActionSet {
		a.Action = r.Action
		if a.Action == hotlist.ActionReplicate && a.Copies == 0 {
			a.Copies = copies(cfg, readRate)
		}
	}
	if r.TTLMs > 0 {
		a.TTLMs = min(r.TTLMs, hotlist.MaxTTLMs)
	}
	if r.Copies > 0 {
		a.Copies = min(r.Copies, hotlist.MaxCopies)
	}
	return a
}

func singleClient(cfg AdviceConfig, f Figures) bool {
	return f.TopClientShare >= cfg.TopClientShare && f.AccessesPerSecond >= cfg.LimitMinRate &&
		(f.Clients >= 2 || f.NodeClients >= minNodeClients)
}

// copies is the least power of two of copies that brings each one down to
// RatePerCopy. Powers of two, because the number then changes only when the
// rate doubles or halves, and each change moves copies.
func copies(cfg AdviceConfig, readRate float64) int {
	if !(readRate > 0) {
		readRate = 0 // also what is not a number
	}
	need := min(math.Ceil(readRate/cfg.RatePerCopy), float64(cfg.MaxCopies))
	n := 1 << bits.Len(uint(max(need, minCopies)-1))
	return min(n, cfg.MaxCopies, hotlist.MaxCopies)
}
