package topk

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestAJumpAheadCostsBoundedWorkAndEmptiesEverything(t *testing.T) {
	for _, gap := range []time.Duration{3 * time.Second, 59 * time.Second, 61 * time.Second, time.Hour, 24 * 365 * time.Hour, math.MaxInt64} {
		f := newFeeder(Config{})
		rng := rand.New(rand.NewPCG(1, 81))
		now := f.stream(rng, t0, t0+70*second, 500, func(int64) float64 { return 0.3 })
		ticks := f.d.tick
		next := int64(math.MaxInt64)
		if int64(gap) < math.MaxInt64-now {
			next = now + int64(gap)
		}
		f.d.Advance(next)
		if done := f.d.tick - ticks; done > 200*ticksPerSec {
			t.Errorf("gap %v: %d ticks evaluated; want at most 200 s of them", gap, done)
		}
		s := f.d.Snapshot()
		if gap > 3*time.Minute && (s.Accesses != 0 || s.Hot != 0 || len(f.d.list) != 0) {
			t.Errorf("gap %v: %d accesses, %d listed; want none", gap, s.Accesses, s.Hot)
		}
		if err := checkTable(f.d); err != nil {
			t.Errorf("gap %v: %v", gap, err)
		}
		ev := f.drain()
		if gap >= time.Hour {
			if len(ev) != 3 || ev[1].Kind != EventCooling || ev[2].Kind != EventGone {
				t.Fatalf("gap %v: events %+v; want hot, cooling, gone", gap, ev)
			}
			if at := ev[2].T - now; at < 110*second || at > 130*second {
				t.Errorf("gap %v: gone %v after the last access; want about 2 minutes", gap, time.Duration(at))
			}
		}
		// Life goes on.
		next = t0 + 1000*second // after a jump to the end of time this is a step back
		if gap < time.Hour {
			next = f.d.now - f.d.offset
		}
		f.stream(rng, next, next+20*second, 500, func(int64) float64 { return 0.3 })
		if s := f.d.Snapshot(); s.Hot != 1 {
			t.Errorf("gap %v: %d hot keys after it; want 1", gap, s.Hot)
		}
	}
}

func TestTheClockMayBeSetBack(t *testing.T) {
	for _, back := range []time.Duration{time.Second, 3 * time.Second, time.Hour, 50 * 365 * 24 * time.Hour} {
		f := newFeeder(Config{})
		rng := rand.New(rand.NewPCG(1, 82))
		now := f.stream(rng, t0, t0+60*second, 500, func(int64) float64 { return 0.3 })
		now -= int64(back)
		end := f.stream(rng, now, now+60*second, 500, func(int64) float64 { return 0.3 })
		s := f.d.Snapshot()
		if s.Hot != 1 || s.Accesses < 25_000 || s.Accesses > 32_000 {
			t.Errorf("back by %v: %d hot, %d accesses; want 1 and about 30,000", back, s.Hot, s.Accesses)
		}
		if steps := s.Counters.ClockSteps; steps != 1 && back > 2*time.Second || steps > 1 {
			t.Errorf("back by %v: %d clock steps", back, steps)
		}
		if s.T > end || s.T < end-second {
			t.Errorf("back by %v: the snapshot is %v from the last packet", back, time.Duration(end-s.T))
		}
		if ev := f.drain(); len(ev) != 1 {
			t.Errorf("back by %v: %d events; want the first hot alone", back, len(ev))
		}
		if err := checkTable(f.d); err != nil {
			t.Errorf("back by %v: %v", back, err)
		}
	}
}

func TestAClockThatJumpsToAndFroDoesNotOverflow(t *testing.T) {
	d := New(Config{Seed: 1})
	a := Access{Key: []byte("k"), Read: true}
	for i := range 3000 {
		a.T = t0 + int64(i)
		if i%2 == 0 {
			a.T = math.MaxInt64 - int64(i)
		}
		if i%7 == 0 {
			a.T = math.MinInt64 + int64(i)
		}
		d.Add(&a)
	}
	if d.now < 0 || d.now > 1<<62+int64(time.Hour)*3000 {
		t.Errorf("internal clock at %d", d.now)
	}
	if err := checkTable(d); err != nil {
		t.Error(err)
	}
	d.Snapshot()
}

func TestOneTimestampForAllAccessesSaturatesNothing(t *testing.T) {
	d := New(Config{Seed: 1})
	d.SetSampleEvery(MaxSampleEvery)
	a := Access{T: t0, Key: []byte("k"), Read: true, Bytes: 1 << 40}
	for range 70_000 { // 70,000 * 65,536 > 2^32
		d.Add(&a)
	}
	s := d.Snapshot()
	k := keyOf(t, s, "k")
	if s.Counters.Saturated == 0 || s.Accesses != k.Accesses || k.Accesses > maxWindowWeight {
		t.Errorf("saturated %d, accesses %d, key %d", s.Counters.Saturated, s.Accesses, k.Accesses)
	}
	if err := checkTable(d); err != nil {
		t.Error(err)
	}
}

// FuzzDetector interprets bytes as operations with hostile times, lengths and
// weights and checks the invariants of the table afterwards.
func FuzzDetector(f *testing.F) {
	f.Add([]byte("\x00abc\x01\xff\xff\xff\x02zzz\x03\x00\x00\x00\x04"))
	f.Add([]byte{0, 0, 0, 0, 1, 0x80, 0, 0, 0, 1, 1, 1, 2, 9, 9, 9, 0, 5, 5, 5})
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 4096 {
			ops = ops[:4096]
		}
		d := New(Config{Seed: 1, MaxHot: 3})
		c := NewCounter(Config{Seed: 1, MaxKeys: 16})
		now := t0
		var h, hc Handle
		for len(ops) >= 4 {
			op, x := ops[0], int64(ops[1])|int64(ops[2])<<8|int64(int8(ops[3]))<<16
			switch op % 8 {
			case 0, 1, 2, 3:
				a := Access{T: now, Key: ops[:min(int(op)/8, len(ops))], KeyLen: x, Command: uint16(x), Write: op&8 != 0, Bytes: x}
				a.Client[15] = ops[2]
				h, hc = d.Add(&a), c.Add(&a)
			case 4:
				d.AddReply(h, x, op&8 != 0)
				c.AddReply(hc, x, op&8 != 0)
			case 5:
				d.SetSampleEvery(int(x))
				d.SetEventSampleEvery(int(ops[1]))
				c.SetSampleEvery(int(x))
			case 6:
				now += x << (op / 8)
				d.Advance(now)
			case 7:
				now += x * 1e6
				d.Snapshot()
				c.Snapshot()
				d.Events(nil)
			}
			ops = ops[4:]
		}
		if d.t != nil {
			if err := checkTable(d); err != nil {
				t.Error(err)
			}
		}
	})
}
