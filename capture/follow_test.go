package capture

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// fakeHost is a system with one device and engines that do as they are told.
type fakeHost struct {
	index   int // of the device, 0 when it is absent
	down    bool
	openErr error // of the next openings
	looks   int   // questions about the device
	opens   int   // attempts to open it
	changes []InterfaceChange
	engine  *fakeEngine // the newest
	f       *follower
}

// fakeEngine delivers a packet every millisecond, or what err says.
type fakeEngine struct {
	err    error
	step   time.Duration
	t      int64
	bound  int
	every  int
	noDice error // of setSampleEvery
	closed int
	stats  *InterfaceStats
}

func (e *fakeEngine) next(p *Packet) error {
	if e.closed > 0 {
		panic("read after close")
	}
	if e.err == ErrTimeout {
		time.Sleep(DefaultTimeout)
		*p = Packet{T: time.Now().UnixNano()}
	}
	if e.err != nil {
		return e.err
	}
	e.t += int64(e.step)
	e.stats.Packets++
	*p = Packet{T: e.t, SampleEvery: e.every}
	return nil
}

func (e *fakeEngine) setSampleEvery(n int) error {
	if e.noDice == nil {
		e.every = n
	}
	return e.noDice
}
func (e *fakeEngine) leave(int64) { e.err = io.EOF }
func (e *fakeEngine) count()      {}
func (e *fakeEngine) index() int  { return e.bound }
func (e *fakeEngine) close()      { e.closed++ }

func (h *fakeHost) open(f *follower) (liveEngine, error) {
	h.opens++
	if h.openErr != nil {
		return nil, h.openErr
	}
	h.engine = &fakeEngine{t: time.Now().UnixNano(), step: time.Millisecond, bound: h.index, every: 1, stats: &f.stats}
	return h.engine, nil
}

func newFakeHost(t *testing.T) *fakeHost {
	t.Helper()
	h := &fakeHost{index: 7}
	f, err := follow(LiveConfig{Interface: "eth0", OnChange: func(c InterfaceChange) { h.changes = append(h.changes, c) }}.withDefaults(), h.open)
	if err != nil {
		t.Fatal(err)
	}
	f.device = func(string) (int, bool, error) {
		h.looks++
		return h.index, !h.down, nil
	}
	h.f = f
	return h
}

// read calls Next n times and returns the packets and the last error that was
// no timeout.
func (h *fakeHost) read(n int) (packets int, err error) {
	var p Packet
	for range n {
		switch e := h.f.Next(&p); {
		case e == nil:
			packets++
		case !errors.Is(e, ErrTimeout):
			err = e
		}
	}
	return packets, err
}

func TestFollowerLooksOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFakeHost(t)
		h.read(10_000) // ten seconds of packets
		if h.looks < 9 || h.looks > 12 {
			t.Errorf("%d looks while busy for 10 s", h.looks)
		}
		h.looks = 0
		h.engine.err = ErrTimeout
		h.read(100) // ten seconds of silence
		if h.looks < 9 || h.looks > 12 {
			t.Errorf("%d looks while idle for 10 s", h.looks)
		}
		h.engine.err, h.engine.t = nil, 1e9 // the clock is set back by decades
		h.looks = 0
		h.read(2_000)
		if h.looks < 2 || h.looks > 4 {
			t.Errorf("%d looks within 2 s after the clock was set back", h.looks)
		}
	})
}

func TestFollowerWaitsAndReopens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFakeHost(t)
		if err := h.f.SetSampleEvery(8); err != nil {
			t.Fatal(err)
		}
		h.read(10)
		first := h.engine
		h.engine.err, h.openErr = fmt.Errorf("gone: %w", ErrDown), fmt.Errorf("none: %w", ErrNoDevice)
		start := time.Now()
		if n, err := h.read(100); n != 0 || err != nil {
			t.Fatalf("%d packets, %v while away", n, err)
		}
		if took := time.Since(start); took < 9*time.Second || took > 10*time.Second {
			t.Errorf("100 reads while away took %v, want the pace of the timeout", took)
		}
		if n := h.opens - 1; n < 9 || n > 11 {
			t.Errorf("%d attempts in 10 s", n)
		}
		h.opens, h.index = 0, 0 // now it is known to be absent
		h.read(20)
		if h.opens != 0 {
			t.Errorf("%d attempts to open what is not there", h.opens)
		}
		if err := h.f.SetSampleEvery(32); err != nil {
			t.Errorf("sampling while away: %v", err)
		}
		h.index, h.openErr = 9, nil
		h.read(30)
		if h.engine == first || first.closed != 1 || h.engine.every != 32 {
			t.Errorf("first %+v, now %+v, want a new one at 1 in 32", first, h.engine)
		}
		is := h.f.Stats().Interfaces[0]
		if is.Reopened != 1 || !is.Up || is.Packets < 20 {
			t.Errorf("%+v", is)
		}
		if len(h.changes) != 2 || h.changes[0].Up || !errors.Is(h.changes[0].Err, ErrDown) || !h.changes[1].Up || !h.changes[1].Reopened {
			t.Errorf("changes %+v", h.changes)
		}
	})
}

func TestFollowerFollowsTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFakeHost(t)
		h.read(5)
		first := h.engine
		h.index = 8 // another device has the name
		if n, err := h.read(3_000); n < 2_900 || err != nil {
			t.Errorf("%d packets, %v", n, err)
		}
		if first.closed != 1 || h.engine.bound != 8 || h.f.stats.Reopened != 1 || len(h.changes) != 2 {
			t.Errorf("old %+v, new %+v, %+v", first, h.engine, h.changes)
		}
		h.down = true
		h.engine.err = ErrTimeout
		h.read(30)
		if h.f.stats.Up || len(h.changes) != 3 || h.engine.closed != 0 {
			t.Errorf("down: %+v, changes %+v", h.f.stats, h.changes)
		}
		h.down = false
		h.read(30)
		if !h.f.stats.Up || len(h.changes) != 4 || h.changes[3].Reopened || h.f.stats.Reopened != 1 {
			t.Errorf("up: %+v, changes %+v", h.f.stats, h.changes)
		}
	})
}

func TestFollowerGivesUpWhatWaitingCannotMend(t *testing.T) {
	unknown := errors.New("ring: no memory")
	for _, tt := range []struct {
		name           string
		err            error
		minOpens, most int
	}{
		{"the right to capture is gone", ErrPermission, 1, 1},
		{"five faults in a row", unknown, maxOpenFaults, maxOpenFaults},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newFakeHost(t)
			h.engine.err, h.openErr, h.opens = ErrDown, tt.err, 0
			_, err := h.read(200)
			if err != io.EOF { // read keeps the last one
				t.Errorf("%s: the last error is %v, want io.EOF", tt.name, err)
			}
			if h.opens < tt.minOpens || h.opens > tt.most {
				t.Errorf("%s: %d attempts", tt.name, h.opens)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		h := newFakeHost(t)
		h.engine.err = unknown
		var p Packet
		if err := h.f.Next(&p); err != unknown {
			t.Errorf("read error: %v, want it as it is", err)
		}
		if err := h.f.Next(&p); err != io.EOF || h.engine.closed != 1 {
			t.Errorf("afterwards: %v, want io.EOF", err)
		}
	})
}

func TestFollowerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFakeHost(t)
		h.f.Close()
		h.f.Close()
		if _, err := h.read(1); err != io.EOF || h.engine.closed != 1 {
			t.Errorf("Close before Next: %v, closed %d times", err, h.engine.closed)
		}
		h.f.Stats()
		if err := h.f.SetSampleEvery(2); err != nil {
			t.Errorf("sampling after the end: %v", err)
		}

		h = newFakeHost(t)
		h.read(1)
		h.engine.err = ErrDown
		h.f.Stop()
		if _, err := h.read(1); err != io.EOF || h.engine.closed != 1 {
			t.Errorf("device lost after Stop: %v, closed %d times", err, h.engine.closed)
		}

		h = newFakeHost(t)
		h.engine.err, h.openErr = ErrDown, ErrNoDevice
		h.read(3)
		start := time.Now()
		time.AfterFunc(10*time.Millisecond, h.f.Stop)
		h.f.Stop()
		if _, err := h.read(1); err != io.EOF || time.Since(start) > 20*time.Millisecond {
			t.Errorf("Stop while away: %v after %v", err, time.Since(start))
		}
	})
}

func TestFollowerSampling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFakeHost(t)
		if err := h.f.SetSampleEvery(3); err == nil || h.engine.every != 1 {
			t.Errorf("1 in 3: %v, engine at %d", err, h.engine.every)
		}
		h.engine.noDice = ErrNoSampling
		if err := h.f.SetSampleEvery(2); !errors.Is(err, ErrNoSampling) {
			t.Errorf("no sampling: %v", err)
		}
	})
}

func TestFollowerDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	h := newFakeHost(t)
	h.engine.step = time.Microsecond
	var p Packet
	if n := testing.AllocsPerRun(1000, func() { h.f.Next(&p) }); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
}
