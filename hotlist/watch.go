package hotlist

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// retainedTimeout bounds reading the retained lists; they come again on
	// the channel within seconds anyway.
	retainedTimeout = 5 * time.Second
	// retainedBatch lists are asked for at once, so that at most 16 MiB of
	// replies wait in memory.
	retainedBatch = 16
	// mergeGap bounds how often the lists are merged: with a thousand nodes
	// that publish four times a second it would be all that is done.
	mergeGap = 20 * time.Millisecond
	// genStep is how often a key's copies can be dropped while it is listed
	// before its generations meet those of the next key.
	genStep = 1 << 32
)

// WatchConfig configures Watch. The zero value follows the default channel.
type WatchConfig struct {
	Channel string // DefaultChannel when empty
	Sharded bool   // SSUBSCRIBE (cluster, Redis 7)
	// NoRetained leaves the retained lists alone: the subscriber then needs
	// no rights on keys, and knows a node's list after at most 5 s.
	NoRetained bool

	// OnEnter and OnLeave, if set, are called for each key that comes onto
	// and leaves the merged list, after IsHot answers accordingly. They run
	// on the watcher's goroutine and must not call Close.
	OnEnter func(*Hot)
	OnLeave func(*Hot)
}

// Watcher follows the hot lists of all nodes. Its methods are safe for any
// number of goroutines.
type Watcher struct {
	cfg    WatchConfig
	client redis.UniversalClient

	view   atomic.Pointer[view]
	status atomic.Pointer[Status]
	id     string // tells our notes from those of others
	ready  chan struct{}
	cancel context.CancelFunc
	done   chan struct{}

	nextGen     atomic.Uint64 // see Hot.gen
	notesFailed atomic.Uint64

	mu        sync.Mutex // guards the lists of listeners
	listeners []*listener
}

// listener is told about changes of the list.
type listener struct {
	change func(entered, left []*Hot)
}

// Status says how well the list is known.
type Status struct {
	Connected bool          // a subscription stands
	Keys      int           // on the merged list
	Nodes     []NodeStatus  // by name
	Age       time.Duration // since the newest list came; 0 when none did

	Lists     uint64 // taken in
	Gaps      uint64 // lists that never came, by their numbers
	OutOfDate uint64 // lists that were not newer than the one before
	Lapsed    uint64 // retained lists past their ttl
	Malformed uint64 // messages that are no valid list
	Versions  uint64 // lists of a version this package does not read
	Refused   uint64 // lists beyond MaxNodes or MaxWatchBytes
	Drops     uint64 // notes of other instances that they wrote hot keys
	// NotesFailed counts notes of our own that could not be sent; other
	// instances then keep their copies for their TTL.
	NotesFailed uint64
	Reconnects  uint64 // subscriptions that ended or failed
	// LastError is why the subscription ended or the retained lists could
	// not be read, nil when all is well.
	LastError error

	newest time.Time
}

// NodeStatus is one node of Status.
type NodeStatus struct {
	Node              string
	Age               time.Duration // since its list came
	Stale             bool          // not renewed in time; its keys are on their way out
	Keys              int
	EpochMs           int64
	Seq               uint64
	AccessesPerSecond float64

	received, stale time.Time
}

// Watch starts to follow the list and returns at once; nothing is hot until
// the first list came (see Ready). It ends with ctx or Close. The client
// stays the caller's; Watch uses a connection of its own for the subscription.
func Watch(ctx context.Context, client redis.UniversalClient, cfg WatchConfig) *Watcher {
	ctx, cancel := context.WithCancel(ctx)
	w := &Watcher{cfg: cfg, client: client, id: rand.Text(), ready: make(chan struct{}), cancel: cancel, done: make(chan struct{})}
	w.view.Store(&view{})
	w.status.Store(&Status{})
	go w.run(ctx)
	return w
}

// Close ends the watcher and waits until its goroutines are gone. The last
// list stays readable. It may be called twice.
func (w *Watcher) Close() {
	w.cancel()
	<-w.done
}

// Ready is closed when a subscription stands and the retained lists were
// read, or could not be: from then on the list is as good as it gets.
func (w *Watcher) Ready() <-chan struct{} { return w.ready }

// IsHot reports whether key is on the list of any node. It takes a few
// nanoseconds and does not allocate.
func (w *Watcher) IsHot(key string) bool {
	_, ok := w.view.Load().keys[key]
	return ok
}

// Lookup returns what is known of a hot key. The result must not be changed.
func (w *Watcher) Lookup(key string) (*Hot, bool) {
	h, ok := w.view.Load().keys[key]
	return h, ok
}

// Drop makes every local copy of key invalid, in all caches of this watcher, at
// once. Call it after key was written by another way than a Hook; it is cheap
// and does nothing for keys that are not hot. Loads that are under way do not
// bring an old value back.
func (w *Watcher) Drop(key string) {
	if h, ok := w.Lookup(key); ok {
		h.gen.Add(1)
	}
}

// DropAll does the same for all keys.
func (w *Watcher) DropAll() {
	for _, h := range w.view.Load().list {
		h.gen.Add(1)
	}
}

// Hot returns the merged list, sorted by share. The elements must not be
// changed, the slice is the caller's.
func (w *Watcher) Hot() []*Hot { return slices.Clone(w.view.Load().list) }

// Status returns how well the list is known.
func (w *Watcher) Status() Status {
	s := *w.status.Load()
	now := time.Now()
	s.NotesFailed = w.notesFailed.Load()
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.Age = now.Sub(n.received)
		n.Stale = !now.Before(n.stale)
	}
	if !s.newest.IsZero() {
		s.Age = now.Sub(s.newest)
	}
	return s
}

// listen registers l and returns how to end that.
func (w *Watcher) listen(l *listener) (remove func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listeners = append(slices.Clone(w.listeners), l)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.listeners = slices.DeleteFunc(slices.Clone(w.listeners), func(x *listener) bool { return x == l })
	}
}

func (w *Watcher) current() []*listener {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.listeners
}

// event is what Listen's goroutine tells the watcher's.
type event struct {
	payload  string
	retained bool
	up, down bool
	err      error
}

// run owns the merger. Listen has a goroutine of its own because the lists
// must lapse also while nothing comes.
func (w *Watcher) run(ctx context.Context) {
	defer close(w.done)
	events := make(chan event)
	send := func(e event) {
		select {
		case events <- e:
		case <-ctx.Done():
		}
	}
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		Listen(ctx, w.client, ListenConfig{
			Channel: w.cfg.Channel, Sharded: w.cfg.Sharded,
			OnMessage: func(p string) { send(event{payload: p}) },
			OnUp:      func(ctx context.Context) { send(event{up: true, err: w.readRetained(ctx, send)}) },
			OnDown:    func(err error) { send(event{down: true, err: err}) },
		})
	}()
	defer func() { <-listening }()

	o := owner{w: w, m: newMerger()}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Stop()
		if at, ok := o.next(); ok {
			timer.Reset(max(time.Until(at), time.Millisecond))
		}
		select {
		case <-ctx.Done():
			return
		case e := <-events:
			o.handle(e)
		case <-timer.C:
		}
		now := time.Now()
		if o.m.expire(now) {
			o.dirty = true
		}
		if o.dirty && now.Sub(o.merged) >= mergeGap {
			o.merged, o.dirty = now, false
			w.publish(o.m, &o.s)
		}
	}
}

// owner is what the watcher's goroutine owns.
type owner struct {
	w      *Watcher
	m      *merger
	s      Status
	dirty  bool      // lists or counters changed since they were published
	merged time.Time // when that was
}

// next returns when there is something to do, and whether there ever is.
func (o *owner) next() (time.Time, bool) {
	if o.dirty {
		return o.merged.Add(mergeGap), true
	}
	return o.m.next()
}

func (o *owner) handle(e event) {
	w, s := o.w, &o.s
	switch {
	case e.up:
		s.Connected, s.LastError = true, e.err
		if o.dirty { // whoever waits for Ready wants to see the lists
			o.merged, o.dirty = time.Now(), false
			w.publish(o.m, s)
		}
		w.storeStatus(o.m, s)
		select {
		case <-w.ready:
		default:
			close(w.ready)
		}
		return
	case e.down:
		s.Connected, s.LastError = false, e.err
		s.Reconnects++
	default:
		o.message(e)
		return
	}
	w.storeStatus(o.m, s)
}

func (o *owner) message(e event) {
	s := &o.s
	l, err := Decode([]byte(e.payload))
	if errors.Is(err, ErrSchema) && !e.retained { // another kind of message
		if o.w.drop(e.payload) {
			s.Drops++
			o.dirty = true
		}
		return
	}
	o.dirty = true // whatever it is, some counter moves
	switch {
	case errors.Is(err, ErrVersion):
		s.Versions++
		return
	case err != nil:
		s.Malformed++
		return
	}
	now := time.Now()
	o.m.expire(now)
	switch o.m.offer(l, len(e.payload), e.retained, now) {
	case accepted:
		s.Lists++
		s.newest = now
	case outOfDate:
		s.OutOfDate++
	case lapsed:
		s.Lapsed++
	case refused:
		s.Refused++
	}
}

// publish makes the merged list the one that IsHot sees, then tells who wants
// to know what changed.
func (w *Watcher) publish(m *merger, s *Status) {
	from, to := w.view.Load(), m.merge()
	for _, h := range to.list {
		if old, ok := from.keys[h.Key]; ok {
			h.gen = old.gen
		} else {
			h.gen = new(atomic.Uint64)
			h.gen.Store(w.nextGen.Add(genStep))
		}
	}
	w.view.Store(to)
	w.storeStatus(m, s)
	entered, left := changes(from, to)
	for _, l := range w.current() {
		l.change(entered, left)
	}
	if w.cfg.OnLeave != nil {
		for _, h := range left {
			w.cfg.OnLeave(h)
		}
	}
	if w.cfg.OnEnter != nil {
		for _, h := range entered {
			w.cfg.OnEnter(h)
		}
	}
}

func (w *Watcher) storeStatus(m *merger, s *Status) {
	out := *s
	out.Gaps = m.gaps
	out.Keys = len(w.view.Load().list)
	out.Nodes = make([]NodeStatus, 0, len(m.nodes))
	for name, n := range m.nodes {
		out.Nodes = append(out.Nodes, NodeStatus{
			Node: name, Keys: len(n.list.Entries), EpochMs: n.list.EpochMs, Seq: n.list.Seq,
			AccessesPerSecond: n.list.AccessesPerSecond, received: n.received, stale: n.stale,
		})
	}
	slices.SortFunc(out.Nodes, func(a, b NodeStatus) int {
		if a.Node < b.Node {
			return -1
		}
		return 1
	})
	w.status.Store(&out)
}

// readRetained reads the list of each node that the index names. It runs when
// the subscription stands already, so that no list can fall between.
func (w *Watcher) readRetained(ctx context.Context, send func(event)) error {
	if w.cfg.NoRetained {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, retainedTimeout)
	defer cancel()
	// The newest first: what an index holds beyond MaxNodes is old.
	nodes, err := w.client.ZRevRange(ctx, NodesKey, 0, MaxNodes-1).Result()
	if err != nil {
		return fmt.Errorf("read node index: %w", err)
	}
	nodes = slices.DeleteFunc(nodes, func(n string) bool { return !ValidNode(n) })
	total := 0
	for batch := range slices.Chunk(nodes, retainedBatch) {
		pipe := w.client.Pipeline()
		cmds := make([]*redis.StringCmd, len(batch))
		for i, n := range batch {
			// Not GET: the key may hold anything of any size.
			cmds[i] = pipe.GetRange(ctx, ListKeyPrefix+n, 0, MaxListBytes)
		}
		_, err = pipe.Exec(ctx)
		for _, c := range cmds {
			if v, e := c.Result(); e == nil && v != "" {
				total += len(v)
				send(event{payload: v, retained: true})
			}
		}
		if err != nil {
			return fmt.Errorf("read retained lists: %w", err)
		}
		if total > MaxWatchBytes {
			break // the rest would be refused
		}
	}
	return nil
}
