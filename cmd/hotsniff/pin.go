package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/hotsniff/hotsniff/actions"
	"github.com/hotsniff/hotsniff/hotlist"
	"github.com/hotsniff/hotsniff/internal/report"
)

// manualFlags are what `pin`, `unpin` and `ban` share.
type manualFlags struct {
	Key    string     `arg:"" help:"The key."`
	Base64 bool       `name:"base64" help:"KEY is in base64: for keys that a shell cannot write."`
	Redis  redisFlags `embed:""`
}

// manualTimeout bounds a command: a few round trips.
const manualTimeout = 10 * time.Second

// do runs what a command does with its key and prints done, which says what
// became of it.
func (f *manualFlags) do(a *app, what func(ctx context.Context, t actions.ManualTarget, key string) (done string, err error)) error {
	key := f.Key
	if f.Base64 {
		raw, err := base64.StdEncoding.DecodeString(key)
		if err != nil {
			return usageError{errors.New("--base64: the key is not base64")}
		}
		key = string(raw)
	}
	if len(key) > hotlist.MaxKeyBytes {
		return usageError{fmt.Errorf("the key is longer than %d bytes", hotlist.MaxKeyBytes)}
	}
	client, err := f.Redis.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(a.ctx, manualTimeout)
	defer cancel()
	done, err := what(ctx, actions.ManualTarget{Client: client, Channel: f.Redis.Channel, Sharded: f.Redis.Sharded}, key)
	if err != nil {
		return redisError(client, err)
	}
	_, err = fmt.Fprintln(a.out, report.PrintableKey(key, 0)+" "+done)
	return err
}

// checkTTL refuses a ttl that Redis would not be asked for.
func checkTTL(ttl time.Duration) error {
	if ttl <= 0 || ttl > actions.MaxManualTTL {
		return usageError{fmt.Errorf("--ttl: want a duration above 0 and at most %v, not %v", actions.MaxManualTTL, ttl)}
	}
	return nil
}

// pinCmd is `hotsniff pin`.
type pinCmd struct {
	manualFlags
	TTL    time.Duration `name:"ttl" default:"24h" help:"How long it stays pinned."`
	From   string        `placeholder:"TIME" help:"When it begins, for events that are known ahead: 2026-11-27T08:00:00+01:00 (default: now)."`
	Action string        `default:"" enum:",localize,replicate,aggregate,limit,none" placeholder:"ACTION" help:"What applications are to do: localize, replicate, aggregate, limit or none (default: hotsniff's advice)."`
	Copies int           `placeholder:"N" help:"Number of copies for --action replicate (default: hotsniff's advice)."`
}

// Run implements the command.
func (c *pinCmd) Run(a *app) error {
	if err := checkTTL(c.TTL); err != nil {
		return err
	}
	if c.Copies < 0 || c.Copies > hotlist.MaxCopies {
		return usageError{fmt.Errorf("--copies: want 0 to %d, not %d", hotlist.MaxCopies, c.Copies)}
	}
	from := time.Now()
	if c.From != "" {
		t, err := time.Parse(time.RFC3339, c.From)
		if err != nil {
			return usageError{fmt.Errorf("--from: want a time such as 2026-11-27T08:00:00+01:00, not %q", c.From)}
		}
		if t.After(from) {
			from = t
		}
	}
	wishes := actions.Rule{Copies: c.Copies}
	wishes.Action, wishes.ActionSet = hotlist.ParseAction(c.Action)
	return c.do(a, func(ctx context.Context, t actions.ManualTarget, key string) (string, error) {
		return fmt.Sprintf("is pinned from %s to %s", when(from), when(from.Add(c.TTL))), t.Pin(ctx, key, from, c.TTL, wishes)
	})
}

// banCmd is `hotsniff ban`.
type banCmd struct {
	manualFlags
	TTL time.Duration `name:"ttl" default:"24h" help:"How long it stays banned."`
}

// Run implements the command.
func (c *banCmd) Run(a *app) error {
	if err := checkTTL(c.TTL); err != nil {
		return err
	}
	return c.do(a, func(ctx context.Context, t actions.ManualTarget, key string) (string, error) {
		return "is banned until " + when(time.Now().Add(c.TTL)), t.Ban(ctx, key, c.TTL)
	})
}

// unpinCmd is `hotsniff unpin`.
type unpinCmd struct {
	manualFlags
}

// Run implements the command.
func (c *unpinCmd) Run(a *app) error {
	return c.do(a, func(ctx context.Context, t actions.ManualTarget, key string) (string, error) {
		was, err := t.Unpin(ctx, key)
		if !was {
			return "was neither pinned nor banned", err
		}
		return "is neither pinned nor banned any more", err
	})
}

func when(t time.Time) string { return t.Local().Format(time.RFC3339) }
