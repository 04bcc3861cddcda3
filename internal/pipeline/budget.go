package pipeline

import (
	"math"
	"time"

	"github.com/hotsniff/hotsniff/capture"
)

// BudgetConfig says how much of a core the capture may take, and what is done
// about it. The zero value keeps every packet.
type BudgetConfig struct {
	// Ratio is the part of one core that the capture thread may take; 0: no
	// limit.
	Ratio float64
	// Every, if not 0, fixes the sampling: 1 packet in so many, a power of two
	// up to capture.MaxSampleEvery.
	Every int
	// Quiet is how long the cost must have been low before more is looked at;
	// 0: 10 s.
	Quiet time.Duration
}

const (
	// leastAccesses a second are sampled as long as the traffic has them: the
	// fast window needs about 1,500 to tell 4 % from 2 %. Of traffic with
	// fewer, fewAccesses are: twice what the fast window needs to speak at all.
	leastAccesses = 1000
	fewAccesses   = 100
	// floorRoom is by how much the accesses must exceed the floor after a step
	// up, so that noise does not take it back at once.
	floorRoom = 1.5

	// fewPackets a second are not what costs: looking at fewer of them would
	// not help, however small the budget is.
	fewPackets = 100

	// settleTicks after a change are not judged: packets that were kept under
	// the old N are still in the ring.
	settleTicks = 2
	// fewTicks are enough to act on a cost of farAbove times the budget,
	// manyTicks on any above it: single ticks are noise. judgeTicks tell what a
	// step up brought; no other follows before.
	fewTicks   = 2
	judgeTicks = 4
	manyTicks  = 8
	farAbove   = 1.5
	// maxDoublings of one step: 0.6 cores become 0.02, and what is still too
	// much follows a second later.
	maxDoublings = 5

	// aim is the part of the budget at which a step up aims, quietPart the part
	// that the cost at the next lower N must stay under before it is tried:
	// between them N stays where it is. Several halvings at once go no further
	// than idlePart.
	aim       = 0.9
	quietPart = 0.8
	idlePart  = 0.4
	// worth is the part by which a step up must have lowered the cost, of what
	// it should have: one that did not help is not repeated until the cost has
	// grown by so much again.
	worth  = 0.25
	regrow = 1.5

	defaultQuiet = 10 * time.Second
	// maxPatience bounds the doubling of Quiet after each halving that had to
	// be taken back within recallTicks: traffic that changes as fast is not
	// followed for ever.
	maxPatience = 32
	recallTicks = 240 // a minute
)

// load is what one tick cost. Times are of the capture thread.
type load struct {
	seconds  float64 // packet time since the last tick
	cpu      float64 // CPU seconds, ticks included
	fixed    float64 // of these, for the tick: they do not change with N
	packets  float64
	accesses float64 // as sampled, not scaled
	dropped  float64
}

func (l *load) add(o *load) {
	l.seconds += o.seconds
	l.cpu += o.cpu
	l.fixed += o.fixed
	l.packets += o.packets
	l.accesses += o.accesses
	l.dropped += o.dropped
}

// budget decides how many packets are looked at: a controller over the loads
// of the last ticks, without clock or source.
type budget struct {
	cfg   BudgetConfig
	every int

	ring     [manyTicks]load
	n        int // ticks in ring since the last change
	at       int
	settle   int     // ticks not to be judged
	quiet    float64 // seconds for which less sampling would have been cheap
	patience float64 // factor of Quiet
	since    int     // ticks since the last change
	halved   bool    // the last change was a halving
	many     bool    // the traffic has leastAccesses
	useless  float64 // cost at which doubling did not help, 0 for none
	expected float64 // cost that the last doubling should have brought, 0 when judged
	before   float64 // cost before it
	packet   float64 // CPU seconds a packet, smoothed
	ratio    float64 // CPU ratio, smoothed
}

func (b *budget) init(cfg BudgetConfig) {
	if cfg.Quiet <= 0 {
		cfg.Quiet = defaultQuiet
	}
	*b = budget{cfg: cfg, every: max(cfg.Every, 1), patience: 1}
}

// tick takes the load of a tick and returns the N to use from now on.
func (b *budget) tick(l load) int {
	if l.seconds <= 0 {
		return b.every
	}
	b.smooth(&l)
	b.since++
	if b.settle > 0 {
		b.settle--
		return b.every
	}
	b.ring[b.at] = l
	b.at = (b.at + 1) % manyTicks
	b.n = min(b.n+1, manyTicks)
	if b.cfg.Every > 0 || b.cfg.Ratio <= 0 {
		return b.every
	}
	few, all := b.last(fewTicks), b.last(manyTicks)
	b.judge()
	switch n, wanted := b.up(&few, &all), b.floor(&few, &all); {
	case n > b.every:
		b.expect(n, &few)
		if b.halved && b.since < recallTicks {
			b.patience = min(b.patience*2, maxPatience)
		}
		b.change(n, false)
	case wanted < b.every:
		b.change(wanted, false)
	default:
		b.down(&few, l.seconds)
	}
	return b.every
}

// smooth keeps the averages that are only shown or predicted with.
func (b *budget) smooth(l *load) {
	b.ratio += (l.cpu/l.seconds - b.ratio) * min(l.seconds, 1) // about a second
	if l.packets >= 250 {
		b.packet += (max(l.cpu-l.fixed, 0)/l.packets - b.packet) * 0.3
	}
}

// last sums the last n ticks, at most those since the change.
func (b *budget) last(n int) load {
	var sum load
	for i := 1; i <= min(n, b.n); i++ {
		sum.add(&b.ring[(b.at-i+manyTicks)%manyTicks])
	}
	return sum
}

// change takes N to n.
func (b *budget) change(n int, halved bool) {
	if b.since > recallTicks*5 {
		b.patience = 1
	}
	if n < b.every {
		b.expected = 0
	}
	b.every, b.halved, b.since = n, halved, 0
	b.n, b.quiet, b.settle = 0, 0, settleTicks
}

// up returns the N that the cost asks for, b.every when it is not too high.
func (b *budget) up(few, all *load) int {
	if b.n < fewTicks || b.expected > 0 {
		return b.every
	}
	limit := b.cfg.Ratio
	farOff := few.cpu/few.seconds > farAbove*limit
	if !farOff && few.dropped == 0 && (b.n < manyTicks || all.cpu/all.seconds <= limit) {
		return b.every
	}
	if few.dropped == 0 && (b.useless > 0 || few.packets < fewPackets*few.seconds) {
		return b.every
	}
	scales := (few.cpu - few.fixed) / few.seconds
	doublings := min(math.Ceil(math.Log2(max(scales, 1e-9)/b.room(few, aim))), maxDoublings)
	if few.dropped > 0 {
		doublings = max(doublings, 1)
	}
	n := b.every
	for range int(doublings) {
		if n >= capture.MaxSampleEvery || !b.spare(few, 2*n) {
			break
		}
		n *= 2
	}
	return n
}

// spare reports whether at N = n more than the floor of accesses would be left.
func (b *budget) spare(l *load, n int) bool {
	all := l.accesses / l.seconds * float64(b.every)
	return all < fewAccesses || all/float64(n) >= floorRoom*b.least(all)
}

// least is the floor of sampled accesses a second for traffic of so many.
func (b *budget) least(all float64) float64 {
	if all >= leastAccesses {
		b.many = true
	} else if all < leastAccesses*0.8 {
		b.many = false
	}
	switch {
	case b.many:
		return leastAccesses
	case all >= fewAccesses:
		return fewAccesses
	}
	return 0
}

// floor returns the N that the floor of accesses allows, at most b.every.
func (b *budget) floor(few, all *load) int {
	n, l := b.every, all
	if few.accesses/few.seconds < all.accesses/all.seconds/2 {
		l = few // it fell far: noise does not do that
	} else if b.n < manyTicks {
		return n
	}
	if b.n < fewTicks || l.accesses == 0 {
		return n
	}
	return b.allowed(l)
}

func (b *budget) allowed(l *load) int {
	n := b.every
	all := l.accesses / l.seconds * float64(n)
	for least := b.least(all); n > 1 && all/float64(n) < least; {
		n /= 2
	}
	return n
}

// expect notes what the step to n should bring.
func (b *budget) expect(n int, l *load) {
	b.before = l.cpu / l.seconds
	b.expected = (l.fixed + (l.cpu-l.fixed)*float64(b.every)/float64(n)) / l.seconds
}

// judge compares what the last step up brought with what it should have: what
// does not scale with N must not drive it up. Drops are another matter.
func (b *budget) judge() {
	if b.n < judgeTicks {
		return
	}
	l := b.last(judgeTicks)
	cost := l.cpu / l.seconds
	if b.expected > 0 {
		if b.before-cost < worth*(b.before-b.expected) {
			b.useless = cost
		}
		b.expected = 0
	}
	if b.useless > 0 && (cost > regrow*b.useless || cost <= b.cfg.Ratio) {
		b.useless = 0
	}
}

// down lowers N when that has been cheap for long enough: by one step, or as
// far as costs next to nothing.
func (b *budget) down(few *load, seconds float64) {
	if b.every == 1 || b.n < fewTicks {
		return
	}
	if few.dropped > 0 || b.predict(few, b.every/2) > b.room(few, quietPart) {
		b.quiet = 0
		return
	}
	patience := b.patience
	if b.predict(few, 1) <= b.room(few, idlePart) {
		patience = 1 // the load has ended
	}
	if b.quiet += seconds; b.quiet < b.cfg.Quiet.Seconds()*patience {
		return
	}
	n := b.every / 2
	for n > 1 && b.predict(few, n/2) <= b.room(few, idlePart) {
		n /= 2
	}
	b.change(n, true)
}

// room is what a part of the budget leaves for packets: at least a tenth of it,
// though the ticks alone take more, since N does not change those.
func (b *budget) room(l *load, part float64) float64 {
	limit := part * b.cfg.Ratio
	return max(limit-l.fixed/l.seconds, limit/10)
}

// predict is the cost of the packets at N = n. It goes by their number: what an
// idle thread costs would be multiplied otherwise.
func (b *budget) predict(l *load, n int) float64 {
	return l.packets / l.seconds * float64(b.every) / float64(n) * b.packet
}
