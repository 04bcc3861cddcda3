package hotlist

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// listenSilence is how long a connection may say nothing before it is
	// given up; lists come every 5 s from each node.
	listenSilence = 6 * time.Second
	// minListenWait and maxListenWait bound the wait before subscribing
	// again; two seconds keep the way back within 5 s of a recovery.
	minListenWait = 100 * time.Millisecond
	maxListenWait = 2 * time.Second
)

// ListenConfig configures Listen. The callbacks run on Listen's goroutine, one
// at a time; all but OnMessage may be nil.
type ListenConfig struct {
	Channel string // DefaultChannel when empty
	Sharded bool   // SSUBSCRIBE (cluster, Redis 7)
	// Silence is how long the connection may be silent before it is given
	// up; 6 s when 0. The server is asked for a sign of life in between.
	Silence time.Duration

	OnMessage func(payload string)
	onMessage func(*redis.Message) // in its place
	// OnUp runs when a subscription was confirmed, before the first message:
	// the moment to read what was missed. Messages wait meanwhile.
	OnUp func(ctx context.Context)
	// OnDown runs when a subscription ended or could not be made.
	OnDown func(err error)
}

func (cfg *ListenConfig) message(m *redis.Message) {
	if cfg.onMessage != nil {
		cfg.onMessage(m)
		return
	}
	cfg.OnMessage(m.Payload)
}

// errSilent: the server accepted the connection and then said nothing.
var errSilent = errors.New("no sign of life from redis")

// Listen subscribes to one channel and stays subscribed, over disconnects,
// restarts and servers that hang, until ctx ends. It is what Watch is built
// on; an application that wants the raw messages may use it alone.
//
// The sign of life is a repeated SUBSCRIBE, so the ACL user needs no right but
// +subscribe.
func Listen(ctx context.Context, client redis.UniversalClient, cfg ListenConfig) {
	if cfg.Channel == "" {
		cfg.Channel = DefaultChannel
	}
	if cfg.Silence <= 0 {
		cfg.Silence = listenSilence
	}
	wait := minListenWait
	for ctx.Err() == nil {
		up, err := listenOnce(ctx, client, cfg)
		if ctx.Err() != nil {
			return
		}
		if cfg.OnDown != nil {
			cfg.OnDown(err)
		}
		if up {
			wait = minListenWait
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait/2 + rand.N(wait/2+1)):
		}
		wait = min(2*wait, maxListenWait)
	}
}

// listenOnce holds one subscription until it breaks. up tells whether it was
// ever confirmed.
func listenOnce(ctx context.Context, client redis.UniversalClient, cfg ListenConfig) (up bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var ps *redis.PubSub
	subscribe := func() error { return ps.Subscribe(ctx, cfg.Channel) }
	if cfg.Sharded {
		ps = client.SSubscribe(ctx)
		subscribe = func() error { return ps.SSubscribe(ctx, cfg.Channel) }
	} else {
		ps = client.Subscribe(ctx)
	}
	defer ps.Close()
	if err := subscribe(); err != nil {
		return false, fmt.Errorf("subscribe: %w", err)
	}

	// The reader below blocks without a deadline: a deadline that struck in
	// the middle of a message would leave the rest of it to be read as the
	// next one. Closing is the only way to end it.
	var w watchdog
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.run(ctx, cfg.Silence, subscribe)
		ps.Close()
	}()
	defer func() { cancel(); <-done }()

	for {
		w.begin()
		v, err := ps.Receive(ctx)
		w.end()
		if err != nil {
			if w.bitten.Load() {
				err = errSilent
			}
			return up, fmt.Errorf("receive: %w", err)
		}
		switch v := v.(type) {
		case *redis.Subscription:
			if !up {
				up = true
				if cfg.OnUp != nil {
					cfg.OnUp(ctx)
				}
			}
		case *redis.Message:
			cfg.message(v)
		}
	}
}

// watchdog ends a subscription that is silent for too long. It looks only
// while the reader waits: the time a callback takes is not the server's.
type watchdog struct {
	waiting atomic.Int64 // since when the reader waits, unix ns; 0: it does not
	bitten  atomic.Bool
}

func (w *watchdog) begin() { w.waiting.Store(time.Now().UnixNano()) }
func (w *watchdog) end()   { w.waiting.Store(0) }

func (w *watchdog) run(ctx context.Context, silence time.Duration, ask func() error) {
	tick := time.NewTicker(max(silence/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		since := w.waiting.Load()
		if since == 0 {
			continue
		}
		switch quiet := time.Duration(time.Now().UnixNano() - since); {
		case quiet > silence:
			w.bitten.Store(true)
			return
		case quiet > silence/4:
			if ask() != nil {
				return
			}
		}
	}
}
