package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/hotsniff/hotsniff/actions"
	"github.com/hotsniff/hotsniff/internal/pipeline"
)

// publishFlags say where the hot list is published. Without a URL it is not.
type publishFlags struct {
	RedisURL     string        `name:"publish.redis-url" placeholder:"URL" help:"Publish the hot list on this Redis: redis://[user@]host:port or rediss:// for TLS. No password in it: see --publish.password-file."`
	Channel      string        `name:"publish.channel" default:"hotsniff:hot" help:"Channel of the list."`
	Username     string        `name:"publish.username" help:"ACL user."`
	PasswordFile string        `name:"publish.password-file" type:"path" placeholder:"FILE" help:"File that holds the password; read again for each connection."`
	Retain       bool          `name:"publish.retain" default:"true" negatable:"" help:"Also keep the newest list in a key, for subscribers that come later."`
	Interval     time.Duration `name:"publish.interval" default:"5s" help:"Time between lists that only renew."`
}

// publisher returns the publisher, or nil when there is no URL.
func (f *publishFlags) publisher(node string, log *slog.Logger) (*actions.Publisher, error) {
	if f.RedisURL == "" {
		return nil, nil
	}
	p, err := actions.New(actions.Config{
		Connection: actions.Connection{URL: f.RedisURL, Username: f.Username, PasswordFile: f.PasswordFile},
		Node:       node, Channel: f.Channel, Retain: f.Retain, Interval: f.Interval, Log: log,
	})
	if err != nil {
		return nil, usageError{err}
	}
	actions.RouteClientLog(log, p.Client())
	return p, nil
}

// feed hands the list of each new snapshot to p until ctx ends. Publish never
// blocks, and this goroutine is not the one that captures.
func feed(ctx context.Context, engine *pipeline.Engine, p *actions.Publisher) {
	tick := time.NewTicker(pipeline.TickEvery / 2)
	defer tick.Stop()
	var last *pipeline.Snapshot
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if s := engine.Latest(); s != nil && s != last {
			last = s
			p.Publish(s.List(actions.AdviceConfig{}))
		}
	}
}
