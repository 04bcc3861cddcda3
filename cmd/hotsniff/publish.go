package main

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotsniff/hotsniff/actions"
	"github.com/hotsniff/hotsniff/hotlist"
	"github.com/hotsniff/hotsniff/internal/config"
	"github.com/hotsniff/hotsniff/internal/export"
	"github.com/hotsniff/hotsniff/internal/pipeline"
)

// publishFlags say where the hot list is published. Without a URL it is not.
type publishFlags struct {
	Redis    redisFlags    `embed:"" prefix:"publish."`
	MaskList bool          `name:"publish.masked" help:"Publish keys as --privacy.keys shows them. Off: the list has their true names, which subscribers need to act on them; denied keys are on no list."`
	Retain   bool          `name:"publish.retain" default:"true" negatable:"" help:"Also keep the newest list in a key, for subscribers that come later."`
	Manual   bool          `name:"publish.manual" default:"true" negatable:"" help:"Take in what 'hotsniff pin' and 'hotsniff ban' put there."`
	Interval time.Duration `name:"publish.interval" default:"5s" min:"250ms" max:"3m" help:"Time between lists that only renew."`
}

// publisher returns the publisher, or nil when there is no address.
func (f *publishFlags) publisher(a *app, node string, log *slog.Logger) (*actions.Publisher, error) {
	if !f.Redis.given() {
		return nil, nil
	}
	p, err := actions.New(actions.Config{
		Connection: f.Redis.connection(), Node: node, Channel: f.Redis.Channel, Sharded: f.Redis.Sharded,
		Retain: f.Retain, Manual: f.Manual, Configured: manualEntries(a.file), Interval: f.Interval, Log: log,
	})
	if err != nil {
		return nil, a.blame(publishKey(err), err)
	}
	return p, nil
}

// publishKey names the setting that an error of actions.New is about.
func publishKey(err error) string {
	for about, key := range map[string]string{
		"publish: node": "node", "redis tls ca": "publish.tls-ca-file", "redis tls certificate": "publish.tls-cert-file",
		"redis password file": "publish.password-file",
	} {
		if strings.HasPrefix(err.Error(), about) {
			return key
		}
	}
	return "publish.redis-url"
}

// publishMetrics returns the metrics of a publisher; none when there is none.
func publishMetrics(p *actions.Publisher) []prometheus.Collector {
	if p == nil {
		return nil
	}
	return []prometheus.Collector{export.NewPublishCollector(p.Stats)}
}

// publishStats returns the counters of a publisher; nil when there is none.
func publishStats(p *actions.Publisher) func() actions.Stats {
	if p == nil {
		return nil
	}
	return p.Stats
}

// manualEntries returns the pins and bans of the configuration file.
func manualEntries(file *config.File) []actions.ManualEntry {
	var out []actions.ManualEntry
	for _, k := range file.Manual() {
		e := actions.ManualEntry{Key: k.Key, Op: actions.OpPin}
		if k.Banned {
			e.Op = actions.OpBan
		}
		if !k.From.IsZero() {
			e.FromMs = k.From.UnixMilli()
		}
		if !k.Until.IsZero() {
			e.UntilMs = k.Until.UnixMilli()
		}
		e.Rule = actions.Rule{TTLMs: k.TTL.Milliseconds(), Copies: k.Copies}
		e.Rule.Action, e.Rule.ActionSet = hotlist.ParseAction(k.Action)
		out = append(out, e)
	}
	return out
}

// nudge tells one goroutine that there is something new. It holds one note: who
// comes late finds the newest state anyway.
type nudge chan struct{}

func newNudge() nudge { return make(nudge, 1) }

// raise never blocks.
func (n nudge) raise() {
	select {
	case n <- struct{}{}:
	default:
	}
}

// feed hands the list of each new snapshot of latest to p as soon as fresh says that it
// is there, and the pins and bans of p to the engine, until ctx ends. Neither
// ever blocks, and this goroutine is not the one that captures. Snapshots come
// four times a second also while no packet does.
func feed(ctx context.Context, engine *pipeline.Engine, latest func() *pipeline.Snapshot, p *actions.Publisher, fresh nudge) {
	var last *pipeline.Snapshot
	var manual *actions.ManualSet
	for {
		if set := p.Manual().Load(); set != manual {
			manual = set
			engine.SetManual(set.Entries())
		}
		if s := latest(); s != nil && s != last {
			last = s
			p.Publish(s.List(actions.AdviceConfig{}))
		}
		select {
		case <-ctx.Done():
			return
		case <-fresh:
		}
	}
}
