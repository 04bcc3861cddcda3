package actions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/hotsniff/hotsniff/hotlist"
)

// Defaults of Config, and what bounds them.
const (
	DefaultInterval = 5 * time.Second
	// DefaultTTL survives two lists that were lost.
	DefaultTTL = 15 * time.Second
	// DefaultMinGap is four lists a second: fast enough for people and
	// caches, slow enough for a list of 100 keys to thousands of subscribers.
	DefaultMinGap = 250 * time.Millisecond
	// DefaultMaxBackoff keeps the way back within 5 s of a recovery: this
	// wait and one attempt.
	DefaultMaxBackoff = 3 * time.Second

	minBackoff = 100 * time.Millisecond
	// maxMaxBackoff: beyond half a minute a daemon looks dead.
	maxMaxBackoff = 30 * time.Second
	// finalTimeout bounds the farewell: a stop takes less than 2 s with it.
	finalTimeout = 700 * time.Millisecond
	// nodeGrace: an entry of the node index is removed only when it expired
	// a minute ago, so that nodes whose clocks differ do not remove each other.
	nodeGrace = time.Minute
)

// Config configures a Publisher. Zero durations mean the defaults.
type Config struct {
	Connection Connection

	Node    string // name of this node in lists and keys; see hotlist.ValidNode
	Channel string // hotlist.DefaultChannel when empty
	Sharded bool   // SPUBLISH instead of PUBLISH (cluster, Redis 7)
	// Retain also stores each list in a key, for subscribers that come later.
	Retain bool
	// Manual takes in pins and bans from hotlist.ManualKey.
	Manual bool
	// Configured are pins and bans of the configuration.
	Configured []ManualEntry

	Interval   time.Duration // between lists that only renew
	TTL        time.Duration // how long a list holds; at least Interval
	MinGap     time.Duration // least time between two lists
	MaxBackoff time.Duration // longest wait after a failure, at most 30 s

	Log *slog.Logger // nil: nothing is logged
}

func (c Config) withDefaults() (Config, error) {
	if c.Channel == "" {
		c.Channel = hotlist.DefaultChannel
	}
	setDuration(&c.Interval, DefaultInterval)
	setDuration(&c.TTL, max(DefaultTTL, 3*c.Interval))
	setDuration(&c.MinGap, DefaultMinGap)
	setDuration(&c.MaxBackoff, DefaultMaxBackoff)
	c.MaxBackoff = min(c.MaxBackoff, maxMaxBackoff)
	if c.Log == nil {
		c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	switch {
	case !hotlist.ValidNode(c.Node):
		return c, errors.New("publish: node name must be 1 to 255 bytes without spaces and control characters")
	case c.TTL < c.Interval:
		return c, errors.New("publish: ttl is shorter than interval, lists would lapse between two of them")
	case c.TTL > hotlist.MaxTTLMs*time.Millisecond:
		return c, fmt.Errorf("publish: ttl is more than %v", hotlist.MaxTTLMs*time.Millisecond)
	}
	return c, nil
}

func setDuration(p *time.Duration, v time.Duration) {
	if *p <= 0 {
		*p = v
	}
}

// Publisher sends hot lists to Redis. Publish, Stats and LocalAddrs are for
// any goroutine; Run is called once.
type Publisher struct {
	cfg    Config
	client *Client
	box    chan *hotlist.List // one slot: the newest list that Run has not taken
	manual *Manual

	replaced atomic.Uint64
	stats    atomic.Pointer[Stats]
}

// New checks the settings and prepares a publisher. It does not connect: a
// Redis that is down is no reason not to start.
func New(cfg Config) (*Publisher, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	client, err := Connect(cfg.Connection)
	if err != nil {
		return nil, err
	}
	p := &Publisher{cfg: cfg, client: client, box: make(chan *hotlist.List, 1)}
	p.stats.Store(&Stats{})
	p.manual = newManual(client, cfg)
	return p, nil
}

// Publish hands over the newest list. It never blocks: a list that Run did not
// take yet is replaced. Node, epoch, seq, at and ttl are filled in by the
// publisher. The list must not be changed afterwards. Call it whenever there
// is a snapshot, several times a second: what is sent, and when, is decided
// behind the mailbox.
func (p *Publisher) Publish(l *hotlist.List) {
	for {
		select {
		case p.box <- l:
			return
		default:
		}
		select {
		case <-p.box:
			p.replaced.Add(1)
		default:
		}
	}
}

// Client returns the connection pool, for RouteClientLog and for commands on
// the same server. Run closes it.
func (p *Publisher) Client() *Client { return p.client }

// Manual returns the pins and bans that the publisher merges into its lists.
func (p *Publisher) Manual() *Manual { return p.manual }

// LocalAddrs returns the local ends of the publisher's connections; see
// Client.LocalAddrs.
func (p *Publisher) LocalAddrs() []netip.AddrPort { return p.client.LocalAddrs() }

// Run publishes until ctx ends, then sends an empty list, which takes 0.7 s at
// most, and closes the connections. Trouble with Redis is counted and logged,
// never returned: Run returns nil.
func (p *Publisher) Run(ctx context.Context) error {
	defer p.client.Close()
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		p.manual.run(ctx)
	}()
	l := newLoop(p)
	l.run(ctx)
	l.farewell()
	<-watching
	return nil
}

// loop is what Run's goroutine owns.
type loop struct {
	p     *Publisher
	epoch int64
	seq   uint64

	raw      *hotlist.List // as handed over
	list     *hotlist.List // with manual entries; nil before the first one
	sent     members       // of the last list that went out
	lastSent time.Time     // zero: nothing went out yet, or the last attempt failed
	manualAt int64         // unix ms at which a manual entry begins or ends, 0 for none

	failures int // in a row
	retryAt  time.Time
	trouble  trouble // of publishing
	retained trouble // of retaining
	stats    Stats
}

func newLoop(p *Publisher) *loop {
	return &loop{
		p: p, epoch: time.Now().UnixMilli(),
		trouble:  trouble{log: p.cfg.Log, redact: p.client.redact, what: "publish hot list"},
		retained: trouble{log: p.cfg.Log, redact: p.client.redact, what: "retain hot list"},
	}
}

func (l *loop) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := time.Now()
		if l.manualAt != 0 && now.UnixMilli() >= l.manualAt {
			l.merge(now)
		}
		due, ok := l.due()
		if ok && !due.After(now) {
			l.attempt(ctx)
			continue
		}
		wait := time.Hour
		if ok {
			wait = due.Sub(now)
		}
		if l.manualAt != 0 {
			wait = min(wait, max(time.UnixMilli(l.manualAt).Sub(now), time.Millisecond))
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case raw := <-l.p.box:
			l.raw = raw
			l.merge(time.Now())
		case <-l.p.manual.changed:
			l.merge(time.Now())
		case <-timer.C:
		}
	}
}

// due says when the next attempt is to be made, and whether there is any.
func (l *loop) due() (time.Time, bool) {
	switch {
	case l.list == nil:
		return time.Time{}, false
	case l.failures > 0:
		return l.retryAt, true
	case !l.sent.equal(l.list):
		return l.lastSent.Add(l.p.cfg.MinGap), true
	}
	return l.lastSent.Add(l.p.cfg.Interval), true
}

// merge joins the detector's list with the manual entries that hold now.
func (l *loop) merge(now time.Time) {
	set := l.p.manual.load()
	l.manualAt = set.next(now.UnixMilli())
	if l.raw == nil {
		return
	}
	l.list = set.merge(l.raw, now.UnixMilli())
}

func (l *loop) attempt(ctx context.Context) {
	body, err := l.encode(l.list)
	if err != nil { // a bug of ours; the next list may be better
		l.fail(ResultOther, err)
		return
	}
	res, err := l.send(ctx, body)
	if res != ResultOK {
		if ctx.Err() == nil {
			l.fail(res, err)
		}
		return
	}
	l.failures = 0
	l.sent = membersOf(l.list)
	l.lastSent = time.Now()
	l.trouble.over()
	l.store()
}

func (l *loop) fail(res Result, err error) {
	wait := backoff(l.failures, l.p.cfg.MaxBackoff)
	l.failures++
	l.retryAt = time.Now().Add(wait)
	l.trouble.begin(res, err)
	l.store()
}

// backoff doubles from minBackoff to most and takes between half and all of
// it at random, so that many publishers do not return at the same moment.
func backoff(failures int, most time.Duration) time.Duration {
	d := most
	if failures < 20 {
		d = min(minBackoff<<failures, most)
	}
	return d/2 + rand.N(d/2+1)
}

// encode numbers the list and leaves out its last entries while it is too
// large.
func (l *loop) encode(list *hotlist.List) ([]byte, error) {
	l.seq++
	out := *list
	out.Node, out.EpochMs, out.Seq = l.p.cfg.Node, l.epoch, l.seq
	out.AtMs, out.TTLMs = time.Now().UnixMilli(), l.p.cfg.TTL.Milliseconds()
	for {
		b, err := hotlist.Encode(&out)
		if !errors.Is(err, hotlist.ErrTooLarge) || len(out.Entries) == 0 {
			return b, err
		}
		out.Entries = out.Entries[:len(out.Entries)/2]
		l.stats.Truncated++
	}
}

// send publishes and, if wanted, retains a list, and counts how it went.
func (l *loop) send(ctx context.Context, body []byte) (Result, error) {
	p := l.p
	start := time.Now()
	var receivers int64
	var err error
	if p.cfg.Sharded {
		receivers, err = p.client.SPublish(ctx, p.cfg.Channel, body).Result()
	} else {
		receivers, err = p.client.Publish(ctx, p.cfg.Channel, body).Result()
	}
	res := classify(err)
	if ctx.Err() != nil && res != ResultOK {
		return res, err // we are leaving: not the server's fault
	}
	l.stats.observe(res, time.Since(start), receivers, int64(len(body)))
	if p.cfg.Retain && !res.lost() {
		l.retain(ctx, body)
	}
	return res, err
}

// retain stores the list for late subscribers. Its failure changes nothing for
// those who listen already, so it is counted apart and has no backoff.
func (l *loop) retain(ctx context.Context, body []byte) {
	p := l.p
	now := time.Now()
	pipe := p.client.Pipeline()
	pipe.Set(ctx, hotlist.ListKeyPrefix+p.cfg.Node, body, p.cfg.TTL)
	pipe.ZAdd(ctx, hotlist.NodesKey, zMember(now.Add(p.cfg.TTL), p.cfg.Node))
	pipe.ZRemRangeByScore(ctx, hotlist.NodesKey, "-inf", fmt.Sprint(now.Add(-nodeGrace).UnixMilli()))
	cmds, err := pipe.Exec(ctx)
	for _, c := range cmds { // the first command that failed, not what the pipeline made of it
		if c.Err() != nil {
			err = c.Err()
			break
		}
	}
	res := classify(err)
	l.stats.Retained[res]++
	if res != ResultOK {
		l.retained.begin(res, err)
	} else {
		l.retained.over()
	}
}

// farewell tells subscribers that this node has no hot keys any more.
func (l *loop) farewell() {
	if l.list == nil {
		return // nobody ever heard of us
	}
	ctx, cancel := context.WithTimeout(context.Background(), finalTimeout)
	defer cancel()
	empty := *l.list
	empty.Entries = nil
	body, err := l.encode(&empty)
	if err == nil {
		_, _ = l.send(ctx, body)
	}
	l.store()
}

func (l *loop) store() {
	l.stats.Failing = l.failures
	l.stats.LastError = l.trouble.now
	l.stats.Seq = l.seq
	s := l.stats
	l.p.stats.Store(&s)
}
