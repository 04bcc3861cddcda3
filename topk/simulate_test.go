package topk

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// TestSimulate runs a Detector through random virtual days beside an exact
// oracle. HOTSNIFF_SIM_RUNS sets the number of runs, HOTSNIFF_SIM_SEED repeats one.
func TestSimulate(t *testing.T) {
	runs := 1000
	if raceEnabled || testing.Short() {
		runs = 30 // the race detector looks for nothing here: one goroutine
	}
	if v, err := strconv.Atoi(os.Getenv("HOTSNIFF_SIM_RUNS")); err == nil {
		runs = v
	}
	first := uint64(1)
	if v, err := strconv.ParseUint(os.Getenv("HOTSNIFF_SIM_SEED"), 10, 64); err == nil {
		first, runs = v, 1
	}
	const lanes = 2
	for lane := range lanes {
		t.Run(fmt.Sprint(lane), func(t *testing.T) {
			t.Parallel()
			for i := lane; i < runs; i += lanes {
				seed := first + uint64(i)
				if err := simulate(seed); err != nil {
					t.Fatalf("HOTSNIFF_SIM_SEED=%d: %v", seed, err)
				}
			}
		})
	}
}

// seen is what the oracle keeps of one access.
type seen struct {
	slice  uint32
	key    uint32
	weight uint32
	write  bool
	bytes  int64
}

type simulation struct {
	rng   *rand.Rand
	d     *Detector
	log   []seen
	t     int64 // virtual time of the traffic
	clock int64 // what the clock shows more than that
	every int
	rate  float64
	keys  uint32
	zipf  *zipf
	hot   uint32 // key that takes hotShare of the accesses
	share float64
	state map[string]EventKind
	whole uint64 // weight of the whole log
	steps bool   // the clock jumps in this run
	dup   float64
	loss  float64
	late  time.Duration
}

func simulate(seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 0x51))
	s := &simulation{
		rng: rng, every: 1, state: map[string]EventKind{},
		t:    1.7e18 + rng.Int64N(1e12),
		rate: []float64{5, 14, 60, 300, 2000}[rng.IntN(5)],
		keys: []uint32{3, 50, 3000, 200000}[rng.IntN(4)],
	}
	if rng.IntN(2) == 0 {
		s.zipf = newZipf(rng, float64(s.keys), 0.6+rng.Float64())
	}
	s.steps = rng.IntN(3) == 0
	if rng.IntN(3) == 0 {
		s.dup = 0.05
	}
	if rng.IntN(3) == 0 {
		s.loss = 0.2
	}
	if rng.IntN(3) == 0 {
		s.late = 900 * time.Millisecond
	}
	s.d = New(Config{Seed: seed, Top: 50, Cooldown: 20 * time.Second, MinStay: 10 * time.Second})
	phases := 3 + rng.IntN(4)
	budget := int(min(max(s.rate*120, 700), 6000)) // accesses; bounds the virtual time
	for range phases {
		if err := s.phase(budget / phases); err != nil {
			return err
		}
	}
	return s.end()
}

// phase is some time with one mix of traffic.
func (s *simulation) phase(n int) error {
	s.hot, s.share = s.rng.Uint32N(s.keys), 0
	if s.rng.IntN(2) == 0 {
		s.share = s.rng.Float64() * s.rng.Float64()
	}
	if s.rng.IntN(4) == 0 {
		s.every = 1 << s.rng.IntN(8)
		s.d.SetSampleEvery(s.every)
	}
	if s.steps {
		s.step()
	}
	check := max(n/6, 1)
	for i := range n {
		s.t += int64(s.rng.ExpFloat64() / s.rate * 1e9)
		if s.rng.Float64() < s.loss {
			continue
		}
		s.access()
		if s.rng.Float64() < s.dup {
			s.access()
		}
		if i%check == check-1 {
			if err := s.check(); err != nil {
				return fmt.Errorf("after %d accesses: %w", len(s.log), err)
			}
		}
	}
	if s.rng.IntN(4) > 0 {
		return nil
	}
	return checkTable(s.d)
}

// step sets the clock: back or ahead by up to an hour, or to the far future.
func (s *simulation) step() {
	switch s.rng.IntN(4) {
	case 0:
		s.clock -= s.rng.Int64N(3600e9)
	case 1:
		s.clock += s.rng.Int64N(3600e9)
	case 2:
		s.d.Advance(1 << 62)
		s.d.Advance(s.t + s.clock)
	}
}

func (s *simulation) pick() uint32 {
	if s.share > 0 && s.rng.Float64() < s.share {
		return s.hot
	}
	if s.zipf != nil {
		return uint32(s.zipf.next()) % s.keys
	}
	return s.rng.Uint32N(s.keys)
}

func (s *simulation) access() {
	k := s.pick()
	a := Access{
		T: s.t + s.clock, Key: fmt.Appendf(nil, "key:%d", k), Command: uint16(k%3 + 1),
		Write: s.rng.IntN(5) == 0, Bytes: 20 + s.rng.Int64N(200),
	}
	a.Client[15] = byte(s.rng.IntN(9))
	if s.late > 0 {
		a.T -= s.rng.Int64N(int64(s.late))
	}
	if h := s.d.Add(&a); h != 0 {
		s.d.AddReply(h, 100, false)
	}
	s.whole += uint64(s.every)
	s.log = append(s.log, seen{s.d.win.slice, k, uint32(s.every), a.Write, a.Bytes})
}

// truth is one key of the oracle.
type truth struct {
	count, writes, request uint64
}

// window returns what the oracle counts in the slow window.
func (s *simulation) window() (all uint64, keys map[uint32]truth) {
	keys = map[uint32]truth{}
	from := (s.d.win.slice/slicesPerSec - uint32(s.d.win.slowN) + 1) * slicesPerSec
	for i := len(s.log) - 1; i >= 0 && s.log[i].slice >= from; i-- {
		l := s.log[i]
		k := keys[l.key]
		k.count += uint64(l.weight)
		k.request += uint64(l.bytes) * uint64(l.weight)
		if l.write {
			k.writes += uint64(l.weight)
		}
		keys[l.key] = k
		all += uint64(l.weight)
	}
	return all, keys
}

func (s *simulation) check() error {
	d := s.d
	all, keys := s.window()
	if d.win.weight() != all {
		return fmt.Errorf("window weight %d; want %d", d.win.weight(), all)
	}
	snap := d.Snapshot()
	if snap.Accesses != all {
		return fmt.Errorf("accesses %d; want %d", snap.Accesses, all)
	}
	if snap.DistinctExact && snap.Distinct != uint64(len(keys)) {
		return fmt.Errorf("distinct %d; want %d", snap.Distinct, len(keys))
	}
	if snap.Hot > d.cfg.MaxHot {
		return fmt.Errorf("%d listed", snap.Hot)
	}
	for i := range snap.Keys {
		k := &snap.Keys[i]
		if err := s.checkKey(snap, k, keys, all); err != nil {
			return fmt.Errorf("%s: %w (%+v)", k.Key, err, *k)
		}
		if i > 0 && CompareKeys(snap.Keys[i-1], *k) >= 0 {
			return fmt.Errorf("%s out of order", k.Key)
		}
	}
	return s.checkEvents()
}

func (s *simulation) checkKey(snap *Snapshot, k *KeyStat, keys map[uint32]truth, all uint64) error {
	n, err := strconv.ParseUint(string(bytes.TrimPrefix(k.Key, []byte("key:"))), 10, 32)
	if err != nil {
		return err
	}
	want := keys[uint32(n)]
	if want.count < k.Accesses || want.count > k.Accesses+k.AccessesError {
		return fmt.Errorf("true count %d outside", want.count)
	}
	if !snap.DistinctExact || k.Accesses == 0 {
		return nil // crowded: splits are ratios
	}
	share := float64(want.count) / float64(all)
	if share < k.ShareLow-1e-9 || share > k.ShareHigh+1e-9 || !(k.ShareLow <= k.Share && k.Share <= k.ShareHigh) {
		return fmt.Errorf("true share %v outside", share)
	}
	if !k.Detailed || k.Extrapolated {
		return nil
	}
	var commands uint64
	for _, c := range k.Commands {
		commands += c.Count
	}
	if k.Reads+k.Writes != k.Accesses || commands+2 < k.Accesses || commands > k.Accesses+2 {
		return fmt.Errorf("splits do not add up")
	}
	if s.whole == all && (k.Writes != want.writes || k.RequestBytes != want.request) {
		return fmt.Errorf("true writes %d, bytes %d", want.writes, want.request)
	}
	return nil
}

// checkEvents checks that every key goes hot, cooling, then hot or gone.
func (s *simulation) checkEvents() error {
	for _, e := range s.d.Events(nil) {
		was, known := s.state[string(e.Key)]
		ok := false
		switch e.Kind {
		case EventHot:
			ok = (!known || was == EventCooling) && e.ShareLow >= 0.02
			s.state[string(e.Key)] = EventHot
		case EventCooling:
			ok = known && was == EventHot && e.Share < 0.01
			s.state[string(e.Key)] = EventCooling
		case EventGone:
			ok = known && was == EventCooling
			delete(s.state, string(e.Key))
		}
		if !ok {
			return fmt.Errorf("event %s of %s after %v (%v): %+v", e.Kind, e.Key, was, known, e)
		}
	}
	if len(s.state) != len(s.d.list) {
		return fmt.Errorf("%d keys listed by events, %d in the list", len(s.state), len(s.d.list))
	}
	return nil
}

// end lets the traffic stop and checks that everything runs empty.
func (s *simulation) end() error {
	s.d.Advance(s.t + s.clock + int64(200*time.Second))
	if err := s.checkEvents(); err != nil {
		return err
	}
	if s.d.win.weight() != 0 || len(s.d.list) != 0 {
		return fmt.Errorf("weight %d and %d keys left 200 s after the last access", s.d.win.weight(), len(s.d.list))
	}
	return checkTable(s.d)
}

// checkTable checks the invariants of the table.
func checkTable(d *Detector) error {
	t := d.t
	var all uint64
	for e := range t.total {
		sum, fast := uint32(0), uint32(0)
		for c := range d.win.slowN {
			sum += t.slow[c][e]
		}
		for c := range d.win.fastN {
			if c != d.win.fcol {
				fast += t.fast[c][e]
			}
		}
		sum += t.fast[d.win.fcol][e]
		if sum != t.total[e] || fast != t.fastTotal[e] || t.inherited[e] > t.total[e] {
			return fmt.Errorf("entry %d: cells %d total %d, fast cells %d total %d, inherited %d", e, sum, t.total[e], fast, t.fastTotal[e], t.inherited[e])
		}
		own := uint32(0)
		d.win.cells(t, e, WindowSlow, func(_ *column, _ int, n uint32) { own += n })
		if t.total[e] > 0 && own != t.own(e) {
			return fmt.Errorf("entry %d: own cells %d, own %d", e, own, t.own(e))
		}
		all += uint64(sum)
	}
	if all != d.win.weight() {
		return fmt.Errorf("cells hold %d, window %d", all, d.win.weight())
	}
	return checkOwners(d)
}

// checkOwners checks that key slots and details belong to the entries that
// think so.
func checkOwners(d *Detector) error {
	slots, used := 0, 0
	for e := range d.t.meta {
		m := &d.t.meta[e]
		if m.key != 0 {
			slots++
			if int(d.t.keys.owner[m.key-1]) != e+1 {
				return fmt.Errorf("entry %d: key slot of another", e)
			}
		}
		if m.detail != 0 {
			used++
			if int(d.detail(m.detail).entry) != e+1 {
				return fmt.Errorf("entry %d: detail of another", e)
			}
		}
	}
	if slots+len(d.t.keys.free) != keySlots || used+len(d.idle) != len(d.details) {
		return fmt.Errorf("slots %d+%d, details %d+%d", slots, len(d.t.keys.free), used, len(d.idle))
	}
	return nil
}
