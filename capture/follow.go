package capture

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// liveEngine reads packets from one opened device, for as long as that device
// lasts. A follower opens one after the other. All of it belongs to the reader
// goroutine; close also to whoever closes a source that nobody reads.
type liveEngine interface {
	// next is Source.Next. It returns io.EOF when its ending asks for it, and
	// when it has drained after leave.
	next(p *Packet) error
	// leave asks next for the packets captured until t, in ns, and for no more.
	leave(t int64)
	setSampleEvery(n int) error
	// count brings the counters that the follower gave it up to date.
	count()
	// index is the interface's number, 0 for all interfaces or when unknown.
	index() int
	close()
}

// ending is what Stop and Close tell the reader. The reader takes the engine
// with its first Next, and from then on only it may close it: packets lie in
// memory shared with the kernel, which closing unmaps.
type ending struct {
	taken   atomic.Bool  // by the reader, or by Close when that came first
	closing atomic.Bool  // Close was called
	stopT   atomic.Int64 // wall clock of Stop in ns, 0 before
	once    sync.Once
	asked   chan struct{} // closed by the first Stop or Close
}

const (
	// lookEvery is how often the follower asks whether its interface is still
	// the one of that name: a handle on an interface that was renamed, or whose
	// name went to another one, is silent and tells nothing.
	lookEvery = int64(time.Second)
	// reopenEvery is the pause between two attempts to open a device that went
	// away. The first attempt is made at once, for one that was replaced.
	reopenEvery = time.Second
	// maxOpenFaults is how many attempts in a row may fail for another reason
	// than that the device is absent or down. One that vanishes again while it
	// is opened fails in many ways; one that fails five times will go on to.
	maxOpenFaults = 5
)

// follower is the Source of a live capture. It follows its interface by name:
// when that vanishes, is replaced or gets another number, it reopens it, and in
// between Next returns ErrTimeout at the pace of an idle source.
type follower struct {
	cfg    LiveConfig
	open   func(*follower) (liveEngine, error)
	device func(name string) (index int, up bool, err error)
	end    ending

	engine  liveEngine // nil while the device is away, and after the end
	stats   InterfaceStats
	sample  int       // what the caller wants, kept over reopenings
	bound   int       // number of the interface that the engine reads, 0 when not known
	due     bool      // time to look at the interface; also before the first packet
	looked  int64     // time of the last look
	leaving bool      // the device is lost, and what it captured is still read
	over    bool      // Next has returned io.EOF or a final error
	mine    bool      // the reader has taken the engine
	retryAt time.Time // of the next attempt to open
	faults  int       // attempts in a row that failed for no known reason
}

// follow opens the device for the first time; an error is the caller's to show.
func follow(cfg LiveConfig, open func(*follower) (liveEngine, error)) (*follower, error) {
	f := &follower{cfg: cfg, open: open, device: device, sample: 1, due: true}
	f.stats.Name = cfg.Interface
	f.looked = time.Now().UnixNano()
	f.end.asked = make(chan struct{})
	if err := f.openEngine(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *follower) openEngine() error {
	engine, err := f.open(f)
	if err != nil {
		return err
	}
	f.engine, f.bound, f.stats.Up, f.faults = engine, engine.index(), true, 0
	if f.sample > 1 && engine.setSampleEvery(f.sample) != nil {
		f.sample = 1 // the packets say so
	}
	return nil
}

// Next implements Source.
func (f *follower) Next(p *Packet) error {
	if f.due {
		if !f.take() || f.over {
			return io.EOF
		}
		f.look(time.Now().UnixNano())
	}
	if f.engine == nil {
		return f.wait(p)
	}
	err := f.engine.next(p)
	if err != nil && err != ErrTimeout {
		return f.fail(p, err)
	}
	// No clock is read: packets bring the time, and a clock that was set back
	// makes the difference a large unsigned number.
	if uint64(p.T-f.looked) >= uint64(lookEvery) {
		f.due, f.looked = true, p.T
	}
	return err
}

// take makes the engine the reader's. It returns false when Close came first.
func (f *follower) take() bool {
	if !f.mine {
		f.mine = f.end.taken.CompareAndSwap(false, true)
	}
	return f.mine
}

// fail decides what an error of the engine means.
func (f *follower) fail(p *Packet, err error) error {
	now := time.Now()
	switch {
	case !isAway(err) && !(err == io.EOF && f.leaving):
		return f.finish(err)
	case f.asked(): // nothing more will come
		return f.finish(io.EOF)
	case !f.leaving:
		f.lose(now.UnixNano(), err)
	default:
		f.closeEngine()
		f.retryAt = now // at once
	}
	*p = Packet{T: now.UnixNano()}
	return ErrTimeout
}

// isAway reports whether the device may come back.
func isAway(err error) bool { return errors.Is(err, ErrDown) || errors.Is(err, ErrNoDevice) }

// look compares the interface of our name with the one that the engine reads.
// now is in nanoseconds since the epoch.
func (f *follower) look(now int64) {
	f.due = false
	if f.engine == nil || f.leaving || f.bound == 0 || f.asked() {
		return
	}
	index, up, err := f.device(f.cfg.Interface)
	switch {
	case err != nil: // cannot be asked: what the engine says must do
	case index != f.bound:
		f.lose(now, ErrDown)
	case up != f.stats.Up: // the engine goes on by itself when it comes up
		f.stats.Up = up
		f.tell(now, false, ErrDown)
	}
}

// lose begins to give up the engine: the packets of the device that still wait
// are read first.
func (f *follower) lose(now int64, why error) {
	f.leaving = true
	f.engine.leave(now)
	if f.stats.Up {
		f.stats.Up = false
		f.tell(now, false, why)
	}
}

func (f *follower) closeEngine() {
	f.engine.count()
	f.engine.close()
	f.engine, f.leaving = nil, false
}

// tell calls the hook.
func (f *follower) tell(now int64, reopened bool, why error) {
	if f.cfg.OnChange == nil {
		return
	}
	if f.stats.Up {
		why = nil
	}
	f.cfg.OnChange(InterfaceChange{T: now, Name: f.cfg.Interface, Up: f.stats.Up, Reopened: reopened, Err: why})
}

// wait is Next while the device is away.
func (f *follower) wait(p *Packet) error {
	if f.over || f.asked() {
		return f.finish(io.EOF)
	}
	if now := time.Now(); !now.Before(f.retryAt) {
		if err := f.reopen(now); err != nil {
			return f.finish(err)
		}
	}
	if f.engine == nil {
		pause := time.NewTimer(f.cfg.Timeout)
		select {
		case <-pause.C:
		case <-f.end.asked:
			pause.Stop()
			return f.finish(io.EOF)
		}
	}
	*p = Packet{T: time.Now().UnixNano()}
	return ErrTimeout
}

// reopen tries once to open the device. An error is final.
func (f *follower) reopen(now time.Time) error {
	f.retryAt = now.Add(reopenEvery)
	if index, up, err := f.device(f.cfg.Interface); f.cfg.Interface != anyDevice && err == nil && (index == 0 || !up) {
		return nil // known without opening anything
	}
	switch err := f.openEngine(); {
	case err == nil:
		f.stats.Reopened++
		f.tell(time.Now().UnixNano(), true, nil)
	case isAway(err):
		f.faults = 0
	case errors.Is(err, ErrPermission):
		return err // given up since the start; waiting does not bring it back
	default:
		if f.faults++; f.faults >= maxOpenFaults {
			return err
		}
	}
	return nil
}

// asked reports whether Stop or Close was called.
func (f *follower) asked() bool { return f.end.closing.Load() || f.end.stopT.Load() != 0 }

// finish ends the source with err and makes every later Next return io.EOF.
func (f *follower) finish(err error) error {
	if f.engine != nil {
		f.closeEngine()
	}
	f.over, f.due = true, true
	return err
}

// SetSampleEvery implements Sampling. While the device is away the new value is
// kept for its return.
func (f *follower) SetSampleEvery(n int) error {
	if err := checkSampleEvery(n); err != nil {
		return err
	}
	if !f.take() {
		return nil // closed: there is nothing to sample
	}
	if f.engine != nil {
		if err := f.engine.setSampleEvery(n); err != nil {
			return err
		}
	}
	f.sample = n
	return nil
}

// Stats implements Source.
func (f *follower) Stats() Stats {
	if f.take() && f.engine != nil {
		f.engine.count()
	}
	return Stats{Interfaces: []InterfaceStats{f.stats}}
}

// Stop implements Source.
func (f *follower) Stop() {
	f.end.stopT.CompareAndSwap(0, time.Now().UnixNano())
	f.end.once.Do(func() { close(f.end.asked) })
}

// Close implements Source.
func (f *follower) Close() error {
	if f.end.closing.Swap(true) {
		return nil
	}
	f.end.once.Do(func() { close(f.end.asked) })
	if f.end.taken.CompareAndSwap(false, true) {
		f.engine.close() // no reader yet, and there will be none
	}
	return nil
}
