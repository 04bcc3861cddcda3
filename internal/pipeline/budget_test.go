package pipeline

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// plant is a capture in virtual time: what a budget sees of traffic that it
// samples.
type plant struct {
	b        budget
	t        float64 // seconds
	rng      *rand.Rand
	packets  float64 // a second on the wire
	accesses float64 // a packet
	cost     float64 // CPU seconds a packet
	fixed    float64 // CPU ratio of the ticks
	wakeups  float64 // CPU ratio that is neither
	noise    float64 // of the cost, as a part of it
	capacity float64 // cost from which the kernel drops, 0 for never
	delay    int     // N of the last tick: packets in the ring are older
	changes  int
	cpu      float64 // cost of the last tick
}

func newPlant(cfg BudgetConfig) *plant {
	p := &plant{rng: rand.New(rand.NewPCG(1, 2)), accesses: 1, cost: 1.5e-6, fixed: 0.004, wakeups: 0.001, delay: 1}
	p.b.init(cfg)
	return p
}

// poisson is a noisy count around mean.
func (p *plant) poisson(mean float64) float64 {
	return max(math.Round(mean+math.Sqrt(mean)*p.rng.NormFloat64()), 0)
}

// run lets seconds pass, calling each after every tick.
func (p *plant) run(seconds float64, each func()) {
	const dt = 0.25
	for end := p.t + seconds; p.t < end-dt/2; {
		p.t += dt
		n := p.poisson(p.packets * dt / float64(p.delay))
		l := load{seconds: dt, packets: n, accesses: n * p.accesses, fixed: p.fixed * dt}
		l.cpu = l.fixed + p.wakeups*dt + n*p.cost*max(1+p.noise*p.rng.NormFloat64(), 0)
		if p.capacity > 0 && l.cpu > p.capacity*dt {
			l.dropped = n * (1 - p.capacity*dt/l.cpu)
		}
		p.cpu = l.cpu / dt
		p.delay = p.b.every
		if p.b.tick(l); p.b.every != p.delay {
			p.changes++
		}
		if each != nil {
			each()
		}
	}
}

// TestBudgetStep is the promise: a load of 0.6 of a core comes under the budget
// within 5 s, and every packet is looked at again within 60 s of its end.
func TestBudgetStep(t *testing.T) {
	for _, after := range []float64{0, 50, 2000} { // packets a second when the load has ended
		p := newPlant(BudgetConfig{Ratio: 0.1})
		p.packets = 1000
		p.run(30, nil)
		if p.b.every != 1 {
			t.Fatalf("N = %d without load", p.b.every)
		}
		p.packets = 400_000
		settled := -1.0
		begin := p.t
		p.run(30, func() {
			if p.cpu > 0.1 {
				settled = -1
			} else if settled < 0 {
				settled = p.t - begin
			}
		})
		t.Logf("under the budget after %.2f s, N = %d, cost %.3f", settled, p.b.every, p.cpu)
		if settled < 0 || settled > 5 {
			t.Errorf("under the budget after %.2f s; want 5", settled)
		}
		if p.b.every > 16 {
			t.Errorf("N = %d for 0.6 of a core; 8 are enough", p.b.every)
		}
		p.packets = after
		begin, settled = p.t, -1
		p.run(60, func() {
			if p.b.every == 1 && settled < 0 {
				settled = p.t - begin
			}
		})
		t.Logf("N = 1 again after %.2f s", settled)
		if settled < 0 || p.b.every != 1 {
			t.Errorf("N = %d a minute after the load; want 1", p.b.every)
		}
	}
}

// TestBudgetComesBackFromTheCoarsest: not ten times ten seconds.
func TestBudgetComesBackFromTheCoarsest(t *testing.T) {
	p := newPlant(BudgetConfig{Ratio: 0.01})
	p.packets, p.accesses = 3e6, 4
	p.run(60, nil)
	if p.b.every < 512 {
		t.Fatalf("N = %d for 4.5 cores and a budget of 0.01; want it coarse", p.b.every)
	}
	p.packets = 0
	p.run(60, nil)
	if p.b.every != 1 {
		t.Errorf("N = %d a minute after the load", p.b.every)
	}
}

// TestBudgetComesBackThoughIdlingCosts: a thread that now and then takes more
// than a tiny budget without packets cannot take less by looking at fewer.
func TestBudgetComesBackThoughIdlingCosts(t *testing.T) {
	for _, wakeups := range []float64{0.003, 0.005, 0.02} {
		p := newPlant(BudgetConfig{Ratio: 0.004})
		p.fixed = 0.001
		p.packets, p.accesses = 15_000, 4
		p.run(8, nil)
		if p.b.every < 2 {
			t.Fatalf("N = %d for %.4f of a core and a budget of 0.004", p.b.every, p.cpu)
		}
		p.packets = 0
		p.run(15, func() { p.wakeups = 2 * wakeups * p.rng.Float64() })
		if p.b.every != 1 {
			t.Errorf("N = %d 15 s after the load, idling at up to %.4f", p.b.every, 2*wakeups)
		}
	}
}

// TestBudgetHoldsStill: no load makes N swing, for an hour each.
func TestBudgetHoldsStill(t *testing.T) {
	for _, noise := range []float64{0, 0.1, 0.4} {
		for cores := 0.01; cores < 3; cores *= 1.13 {
			p := newPlant(BudgetConfig{Ratio: 0.1})
			p.noise = noise
			p.packets = cores / p.cost
			p.run(60, nil)
			p.changes = 0
			sum := 0.0
			p.run(3600, func() { sum += p.cpu / (4 * 3600) })
			if limit := 12; p.changes > limit {
				t.Errorf("%.3f cores, noise %.1f: N changed %d times in an hour", cores, noise, p.changes)
			}
			if sum > 0.1*1.02 {
				t.Errorf("%.3f cores, noise %.1f: cost %.3f in the mean", cores, noise, sum)
			}
		}
	}
}

// TestBudgetFollowsDrops: where the kernel loses packets, N rises though the
// cost is within the budget.
func TestBudgetFollowsDrops(t *testing.T) {
	p := newPlant(BudgetConfig{Ratio: 1.5})
	p.packets, p.capacity = 900_000, 0.9 // 1.35 cores of work on one core
	p.run(10, nil)
	if p.b.every != 2 {
		t.Errorf("N = %d; want 2", p.b.every)
	}
	p.changes = 0
	p.run(3600, nil)
	if p.changes > 14 { // it tries N = 1 ever more rarely
		t.Errorf("N changed %d times in an hour", p.changes)
	}
}

// TestBudgetKeepsAFloorOfAccesses: a budget that cannot be held does not blind
// the detector.
func TestBudgetKeepsAFloorOfAccesses(t *testing.T) {
	for _, c := range []struct {
		packets, accesses float64 // a second, and of keys in each packet
		budget            float64
		least             float64 // accesses a second to be sampled
	}{
		{20_000, 1, 0.003, 1000},
		{20_000, 1, 0.00001, 1000},
		{1500, 16, 0.00001, 1000},
		{900, 1, 0.00001, 100},
		{500_000, 0.004, 0.01, 1000}, // a flood without keys, and 2,000 accesses
	} {
		p := newPlant(BudgetConfig{Ratio: c.budget})
		p.packets, p.accesses = c.packets, c.accesses
		p.run(60, nil)
		p.run(600, func() {
			if got := c.packets * c.accesses / float64(p.b.every); got < c.least {
				t.Fatalf("%+v: N = %d leaves %.0f accesses a second", c, p.b.every, got)
			}
		})
		// The load falls: the floor holds within seconds.
		p.packets /= 4
		p.run(5, nil)
		if got, all := p.packets*c.accesses/float64(p.b.every), p.packets*c.accesses; got < min(c.least, all)*0.99 && p.b.every > 1 && all >= 1000 {
			t.Errorf("%+v: after the load fell N = %d leaves %.0f accesses a second", c, p.b.every, got)
		}
	}
}

// TestBudgetIsNotDrivenByWhatDoesNotScale: ticks and wakeups beyond the budget
// do not make N rise again and again.
func TestBudgetIsNotDrivenByWhatDoesNotScale(t *testing.T) {
	for _, c := range []struct{ fixed, wakeups, packets float64 }{
		{0.2, 0, 30}, {0, 0.2, 30}, {0.2, 0, 20_000}, {0.05, 0.2, 20_000},
	} {
		p := newPlant(BudgetConfig{Ratio: 0.1})
		p.fixed, p.wakeups, p.packets, p.accesses = c.fixed, c.wakeups, c.packets, 50
		p.run(3600, nil)
		if p.b.every > 32 || p.changes > 20 {
			t.Errorf("%+v: N = %d after %d changes", c, p.b.every, p.changes)
		}
		p.packets = 0
		p.run(60, nil)
		if p.b.every != 1 {
			t.Errorf("%+v: N = %d a minute after the load", c, p.b.every)
		}
	}
}

// TestBudgetFollowsLoadThatComesAndGoes: bursts are sampled, pauses are not, and
// the changes stay few.
func TestBudgetFollowsLoadThatComesAndGoes(t *testing.T) {
	p := newPlant(BudgetConfig{Ratio: 0.1})
	for range 30 {
		p.packets = 400_000
		p.run(60, nil)
		if p.cpu > 0.1 {
			t.Errorf("cost %.3f at the end of a burst", p.cpu)
		}
		p.packets = 1000
		p.run(60, nil)
		if p.b.every != 1 {
			t.Errorf("N = %d at the end of a pause", p.b.every)
		}
	}
	if p.changes > 30*6 {
		t.Errorf("N changed %d times in an hour", p.changes)
	}
}

func TestBudgetOffAndFixed(t *testing.T) {
	for _, c := range []struct {
		cfg  BudgetConfig
		want int
	}{{BudgetConfig{}, 1}, {BudgetConfig{Ratio: 0.1, Every: 16}, 16}, {BudgetConfig{Every: 1, Ratio: 0.1}, 1}} {
		p := newPlant(c.cfg)
		p.packets = 2e6
		p.run(60, nil)
		if p.b.every != c.want {
			t.Errorf("%+v: N = %d; want %d", c.cfg, p.b.every, c.want)
		}
		if p.b.ratio < 0.1 {
			t.Errorf("%+v: shows a cost of %v", c.cfg, p.b.ratio)
		}
	}
}

// TestBudgetSurvivesOddClocks: ticks without time, and CPU times that run
// backwards.
func TestBudgetSurvivesOddClocks(t *testing.T) {
	var b budget
	b.init(BudgetConfig{Ratio: 0.1, Quiet: time.Second})
	rng := rand.New(rand.NewPCG(3, 4))
	odd := []float64{0, -1, 1, 1e9, -1e9, 1e-9, 0.25, math.Inf(1), math.NaN()}
	for range 100_000 {
		pick := func() float64 { return odd[rng.IntN(len(odd))] }
		n := b.tick(load{seconds: pick(), cpu: pick(), fixed: pick(), packets: pick(), accesses: pick(), dropped: pick()})
		if n < 1 || n > 1024 || n&(n-1) != 0 {
			t.Fatalf("N = %d", n)
		}
	}
}
