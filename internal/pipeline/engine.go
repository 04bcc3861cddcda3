package pipeline

import (
	"context"
	"errors"
	"io"
	"math"
	"sync/atomic"
	"time"

	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/resp"
	"github.com/hotsniff/hotsniff/topk"
)

// TickEvery is the packet time between two snapshots: the detector's fast
// window is evaluated as often.
const TickEvery = 250 * time.Millisecond

// MaxPorts bounds the server ports that are followed at once: each has a
// detector of 2 MB.
const MaxPorts = 32

// pollEvery is how many packets go by between two looks at the context: a
// look costs more than a packet.
const pollEvery = 4096

// Config says what an Engine does. The zero value of a field is its default.
type Config struct {
	Ports    *capture.PortSet // server ports, default 6379
	Detector topk.Config
	Commands []resp.Row // added to the table of commands
	Top      int        // keys in a snapshot, default 20; AllKeys for every one
	Whole    bool       // count the whole input as one window, exactly (files)
	// OnEvents is called on the goroutine of Run, at ticks at which the hot
	// list changed. The slice is valid during the call.
	OnEvents func([]Event)
	// Budget bounds the CPU time of the capture by sampling in the kernel, for
	// sources that implement capture.Sampling.
	Budget BudgetConfig
	// CPUTime returns the CPU time that the goroutine of Run has used: that of
	// its thread, to which the caller must have locked it. It is called a few
	// times a second. nil: Budget.Ratio has no effect.
	CPUTime func() time.Duration
	// OnSnapshot, if set, is called on the goroutine of Run after each
	// snapshot, once a tick: Latest returns it from then on. It must not
	// block; a send to a channel that drops what does not fit is enough.
	OnSnapshot func()
	// OnPanic, if set, makes the engine survive a panic, which is a bug of
	// ours: it is called with the value and the stack. Tests leave it unset.
	OnPanic func(v any, stack []byte)
}

// AllKeys as Config.Top puts every counted key into the snapshots.
const AllKeys = math.MaxInt32

// Event is one change of the hot list of a port.
type Event struct {
	topk.Event
	Port uint16
}

// Engine is the whole path from packets to snapshots.
type Engine struct {
	cfg     Config
	src     capture.Source
	asm     *capture.Assembler[conn]
	dec     *resp.Decoder
	clock   clock
	pkt     capture.Packet
	seg     capture.Segment
	req     resp.Request
	access  topk.Access
	ports   [1 << 16]*port // by server port; nil until its first request
	active  []*port
	refused uint64 // requests to ports beyond MaxPorts

	governor governor
	thin     thin

	verdicts [capture.NumVerdicts]uint64
	packets  uint64
	panics   panicCount
	started  int64 // time of the first packet, 0 before
	nextTick int64
	events   []topk.Event
	listed   []Event
	latest   atomic.Pointer[Snapshot]

	manual     manual
	manualNext atomic.Pointer[manualSet] // looked at once a tick
	tuning     *tuning                   // the newest that was taken in, nil before a reload
	tuningNext atomic.Pointer[tuning]    // looked at once a tick

	commandNames []string
	random       uint32 // xorshift state, see rand
}

// New returns an Engine that reads src. The caller closes src.
func New(cfg Config, src capture.Source) (*Engine, error) {
	if cfg.Top == 0 {
		cfg.Top = 20
	}
	if cfg.Ports == nil {
		ports, err := capture.ParsePorts("6379")
		if err != nil {
			return nil, err
		}
		cfg.Ports = ports
	}
	e := &Engine{cfg: cfg, src: src, random: 1, thin: thin{every: 1}}
	e.connect()
	for id := range e.dec.NumCommands() {
		e.commandNames = append(e.commandNames, e.dec.CommandName(resp.CommandID(id)))
	}
	return e, nil
}

// connect makes the assembler and the decoder, without any connection.
func (e *Engine) connect() {
	e.dec = resp.NewDecoder(resp.Config{Extra: e.cfg.Commands})
	e.asm = capture.NewAssembler[conn](capture.AssemblerConfig{Ports: e.cfg.Ports}, e)
}

// reconnect forgets all connections and what is unfinished in them, as if the
// capture began now in the middle of each. Counters go on.
func (e *Engine) reconnect() {
	assembler, decoder := *e.asm.Stats(), *e.dec.Stats()
	assembler.Flows = 0
	e.connect()
	*e.asm.Stats() = assembler
	*e.dec.Stats() = decoder
}

// Run reads packets until the source ends, fails, or ctx ends. The end of the
// source and of ctx are no errors. Damage in one of several files is returned
// joined at the end: what could be read is counted all the same.
func (e *Engine) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { e.src.Stop() })
	defer stop()
	var damage []error
	if err := e.govern(); err != nil {
		return err
	}
	for !e.loop(ctx, &damage) {
	}
	e.finish()
	return errors.Join(damage...)
}

// loop takes packets until the end, or until a panic was survived; true means
// the end.
func (e *Engine) loop(ctx context.Context, damage *[]error) (done bool) {
	if e.cfg.OnPanic != nil {
		defer func() {
			if v := recover(); v != nil {
				done = e.recovered(v, damage)
			}
		}()
	}
	for {
		e.packets++
		err := e.src.Next(&e.pkt)
		if err == nil {
			e.packet()
		} else if !e.survive(err, damage) {
			return true
		}
		if e.packets%pollEvery == 0 && e.cfg.Whole && ctx.Err() != nil {
			return true
		}
	}
}

// survive handles what Next returned beside a packet; false ends the loop.
func (e *Engine) survive(err error, damage *[]error) bool {
	if errors.Is(err, capture.ErrTimeout) {
		e.idle()
		e.advance(e.clock.follow(e.pkt.T))
		return true
	}
	if errors.Is(err, io.EOF) {
		return false
	}
	*damage = append(*damage, err)
	var file *capture.FileError
	return errors.As(err, &file)
}

// packet takes the packet in hand through the whole path.
func (e *Engine) packet() {
	t := e.clock.follow(e.pkt.T)
	e.pkt.T = t
	if t >= e.nextTick {
		e.advance(t)
	}
	v := capture.Decode(&e.pkt, &e.seg)
	e.verdicts[v]++
	switch {
	case v != capture.Decoded:
	case e.pkt.SampleEvery > 1 || e.thin.on:
		e.thinned()
	default:
		e.asm.Add(&e.seg)
	}
}

// advance does what is due at ticks.
func (e *Engine) advance(t int64) {
	if e.started == 0 {
		e.started = t
	} else if t < e.nextTick {
		return
	}
	e.nextTick = t - t%int64(TickEvery) + int64(TickEvery)
	cpu := e.cpuTime()
	e.asm.Tick(t)
	e.takeTuning()
	e.takeManual(t)
	e.tickPorts(t)
	if !e.cfg.Whole {
		e.store(t)
		e.control(t, cpu, e.Latest())
	}
}

// store makes the snapshot that all others see, and says that it is there.
func (e *Engine) store(t int64) {
	e.latest.Store(e.snapshot(t))
	if e.cfg.OnSnapshot != nil {
		e.cfg.OnSnapshot()
	}
}

// tickPorts evaluates the windows and hands list changes on.
func (e *Engine) tickPorts(t int64) {
	e.listed = e.listed[:0]
	for _, p := range e.active {
		if p.detector == nil {
			continue
		}
		p.history.rotate(t)
		p.detector.Advance(t)
		e.events = p.detector.Events(e.events[:0])
		for _, ev := range e.events {
			e.listed = append(e.listed, Event{Event: ev, Port: p.number})
		}
	}
	if len(e.listed) > 0 && e.cfg.OnEvents != nil {
		e.cfg.OnEvents(e.listed)
	}
}

// finish delivers what is still buffered and stores the last snapshot.
func (e *Engine) finish() {
	t := e.clock.now
	e.asm.Flush(t)
	e.tickPorts(t)
	e.store(t)
}

// rand returns the next of a fixed sequence of random numbers (xorshift): a
// replay of a file must give the same answer.
func (e *Engine) rand() uint32 {
	x := e.random
	x ^= x << 13
	x ^= x >> 17
	x ^= x << 5
	e.random = x
	return x
}

// Latest returns the newest snapshot, nil before the first one. Any goroutine.
func (e *Engine) Latest() *Snapshot { return e.latest.Load() }
