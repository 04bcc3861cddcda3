package hotlist

import (
	"context"
	"crypto/tls"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	// DefaultTrackedKeys is how many keys are tracked: as many as one
	// daemon lists. For each write of anybody the server compares the key
	// with every prefix, so their number is a price that all pay.
	DefaultTrackedKeys = 100
	// maxTrackedKeys bounds TrackingConfig.MaxKeys for that reason.
	maxTrackedKeys = MaxKeys
	// trackingCheck is how often the tracking connection is asked whether it
	// still tracks: nobody says so when it does not.
	trackingCheck = time.Second
	// trackingSilence is how long the invalidation connection may be silent;
	// the advised life of a copy is as long.
	trackingSilence = 3 * time.Second
	// invalidateChannel is where a server sends invalidations of a client
	// that redirects them to a RESP2 connection (redis.io, client-side
	// caching).
	invalidateChannel = "__redis__:invalidate"
)

// TrackingConfig configures NewTracking. Zero fields mean the defaults.
type TrackingConfig struct {
	// MaxKeys is how many keys are tracked, those with the largest share
	// first; DefaultTrackedKeys when 0. Copies of the others end by their TTL.
	MaxKeys int
}

// Tracking lets the server itself say when a listed key was written, by
// whomever: the copies of that key in every Hook and Cache of the watcher are
// dropped a round trip later. Without it they live for their TTL.
//
//	tracking := hotlist.NewTracking(watcher, rdb, hotlist.TrackingConfig{})
//	defer tracking.Close()
//
// It uses CLIENT TRACKING in broadcasting mode (Redis 6), with the listed keys
// as prefixes, on two connections of its own: one tracks, the other receives.
// The connections of the application are left alone, and the server keeps no
// table of keys. A prefix also matches longer keys: where "user:1" is listed,
// writes of "user:10" cost a message each and nothing else. The empty key is
// never tracked, because it is a prefix of all.
//
// When a connection breaks all copies are dropped, and again when it is back;
// in between they live for their TTL, as without tracking. Not supported:
// Redis Cluster, where each node would have to be tracked.
//
// The user needs `+subscribe +multi +exec +client|id +client|tracking
// +client|getredir` and the channel `&__redis__:invalidate`.
type Tracking struct {
	w       *Watcher
	max     int
	receive *redis.Client // its one connection subscribes
	control *redis.Client // its one connection tracks
	remove  func()
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	id   atomic.Int64  // of the receiving connection, as the server counts; 0 while there is none
	up   atomic.Bool   // its subscription is confirmed
	wake chan struct{} // one slot: list or connection changed

	messages, drops, restarts atomic.Uint64
	state                     atomic.Pointer[trackingState]
}

type trackingState struct {
	connected       bool
	keys, untracked int
	err             error
}

// TrackingStats says how well writes are seen.
type TrackingStats struct {
	Connected bool   // the server tells of writes
	Keys      int    // tracked
	Untracked int    // listed and worth a copy, but beyond MaxKeys
	Keyed     uint64 // keys that the server named, also those that only begin like a listed one
	Drops     uint64 // of which were listed
	Restarts  uint64 // connections that had to be made again
	LastError error  // why it is not connected, nil when it is
}

// NewTracking starts to track. client is one that reads the keys; its address
// and credentials are used, its connections and hooks are not. It returns at
// once and goes on trying while the server is away, until Close.
func NewTracking(w *Watcher, client *redis.Client, cfg TrackingConfig) *Tracking {
	if cfg.MaxKeys <= 0 {
		cfg.MaxKeys = DefaultTrackedKeys
	}
	ctx, cancel := context.WithCancel(context.Background())
	t := &Tracking{w: w, max: min(cfg.MaxKeys, maxTrackedKeys), cancel: cancel, wake: make(chan struct{}, 1)}
	t.state.Store(&trackingState{})
	opt := trackingOptions(client.Options())
	t.control = redis.NewClient(opt)
	opt = trackingOptions(client.Options())
	opt.OnConnect = func(ctx context.Context, c *redis.Conn) error {
		id, err := c.ClientID(ctx).Result()
		t.id.Store(id)
		return err
	}
	t.receive = redis.NewClient(opt)
	t.remove = w.listen(&listener{change: func(_, _ []*Hot) { t.poke() }})
	t.wg.Go(func() {
		Listen(ctx, t.receive, ListenConfig{Channel: invalidateChannel, Silence: trackingSilence, onMessage: t.message,
			OnUp: func(context.Context) { t.up.Store(true); t.poke() }, OnDown: t.down})
	})
	t.wg.Go(func() { t.run(ctx) })
	return t
}

// trackingOptions reach the same server as opt, as the same user, with RESP2,
// one connection, and nothing done behind our back.
func trackingOptions(opt *redis.Options) *redis.Options {
	var tlsConfig *tls.Config
	if opt.TLSConfig != nil {
		tlsConfig = opt.TLSConfig.Clone()
	}
	return &redis.Options{
		Network: opt.Network, Addr: opt.Addr, Dialer: opt.Dialer, TLSConfig: tlsConfig,
		Username: opt.Username, Password: opt.Password, CredentialsProvider: opt.CredentialsProvider,
		CredentialsProviderContext: opt.CredentialsProviderContext, StreamingCredentialsProvider: opt.StreamingCredentialsProvider,
		DialTimeout: opt.DialTimeout, ReadTimeout: opt.ReadTimeout, WriteTimeout: opt.WriteTimeout, ContextTimeoutEnabled: true,
		Protocol: 2, DisableIdentity: true, MaxRetries: -1, PoolSize: 1, PipelinePoolSize: -1, DialerRetries: 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// Close ends tracking and its connections. Copies then end by their TTL.
func (t *Tracking) Close() {
	t.remove()
	t.cancel()
	t.wg.Wait()
	t.receive.Close()
	t.control.Close()
}

// Stats returns the counters.
func (t *Tracking) Stats() TrackingStats {
	s := t.state.Load()
	return TrackingStats{Connected: s.connected && t.up.Load(), Keys: s.keys, Untracked: s.untracked, LastError: s.err,
		Keyed: t.messages.Load(), Drops: t.drops.Load(), Restarts: t.restarts.Load()}
}

func (t *Tracking) poke() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// message drops what was written. A flush comes as a message without keys,
// which ends the subscription: see down.
func (t *Tracking) message(m *redis.Message) {
	t.messages.Add(uint64(len(m.PayloadSlice)))
	for _, key := range m.PayloadSlice {
		if h, ok := t.w.Lookup(key); ok {
			h.gen.Add(1)
			t.drops.Add(1)
		}
	}
}

// down: everything was flushed, or nobody knows what was written since.
func (t *Tracking) down(error) {
	t.up.Store(false)
	t.id.Store(0)
	t.restarts.Add(1)
	t.w.DropAll()
	t.poke()
}

// run keeps the tracking connection in step with the list and with the
// receiving connection.
func (t *Tracking) run(ctx context.Context) {
	var c trackingConn
	defer c.close()
	tick := time.NewTicker(trackingCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		case <-tick.C:
		}
		keys, untracked := trackable(t.w.view.Load().list, t.max)
		err := t.step(ctx, &c, keys)
		if err != nil {
			c.close()
		}
		t.state.Store(&trackingState{connected: err == nil && c.conn != nil, keys: len(c.keys), untracked: untracked, err: err})
	}
}

// step brings the tracking connection up to date.
func (t *Tracking) step(ctx context.Context, c *trackingConn, keys []string) error {
	id := t.id.Load()
	if !t.up.Load() || id == 0 {
		c.close()
		return nil
	}
	if c.conn != nil && (c.redirect != id || !c.tracks(ctx)) {
		c.close()
		t.restarts.Add(1)
	}
	anew := c.conn == nil
	if anew {
		c.conn, c.redirect = t.control.EphemeralConn(), id
	}
	if !anew && slices.Equal(c.keys, keys) {
		return nil
	}
	before := c.keys
	if err := c.track(ctx, keys); err != nil {
		return err
	}
	// A copy that was made before its key was tracked may be of a value that
	// was replaced in between.
	for _, k := range keys {
		if _, found := slices.BinarySearch(before, k); !found {
			t.w.Drop(k)
		}
	}
	return nil
}

// trackingConn is the connection that tracks and what it was told.
type trackingConn struct {
	conn     *redis.Conn
	redirect int64
	keys     []string // sorted
}

func (c *trackingConn) close() {
	if c.conn != nil {
		c.conn.Close()
	}
	*c = trackingConn{}
}

// tracks asks the server whether the connection still does what it was told:
// one that was made anew behind our back does not.
func (c *trackingConn) tracks(ctx context.Context) bool {
	cmd := redis.NewIntCmd(ctx, "client", "getredir")
	err := c.conn.Process(ctx, cmd)
	return err == nil && (cmd.Val() == c.redirect || len(c.keys) == 0)
}

// track replaces the prefixes. Both steps happen in one transaction: no write
// falls between.
func (c *trackingConn) track(ctx context.Context, keys []string) error {
	_, err := c.conn.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Do(ctx, "client", "tracking", "off")
		if len(keys) == 0 { // without a prefix it would mean all keys
			return nil
		}
		args := []any{"client", "tracking", "on", "redirect", c.redirect, "bcast"}
		for _, prefix := range prefixes(keys) {
			args = append(args, "prefix", prefix)
		}
		p.Do(ctx, args...)
		return nil
	})
	if err == nil {
		c.keys = keys
	}
	return err
}

// trackable returns the keys to track, sorted: of those that are copied at all
// the first most, and how many are left out.
func trackable(list []*Hot, most int) (keys []string, left int) {
	for _, h := range list {
		switch {
		case !h.Cacheable():
		case h.Key == "" || len(keys) == most:
			left++
		default:
			keys = append(keys, h.Key)
		}
	}
	slices.Sort(keys)
	return keys, left
}

// prefixes returns those of the sorted keys that do not begin with another:
// the server refuses prefixes that overlap.
func prefixes(keys []string) []string {
	var out []string
	for _, k := range keys {
		if len(out) == 0 || !strings.HasPrefix(k, out[len(out)-1]) {
			out = append(out, k)
		}
	}
	return out
}
