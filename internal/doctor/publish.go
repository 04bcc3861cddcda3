package doctor

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsniff/hotsniff/actions"
	"github.com/hotsniff/hotsniff/hotlist"
)

// PublishConfig says what the daemon is to do at the Redis that carries the
// list.
type PublishConfig struct {
	Node    string
	Channel string
	Sharded bool
	Retain  bool
	Manual  bool
	// Timeout bounds the whole check.
	Timeout time.Duration
}

// doctorNote is what goes over the channel: a schema that subscribers ignore.
const doctorNote = `{"schema":"hotsniff.doctor/v1"}`

// noNode is a member that the node index cannot have: it is no valid name.
const noNode = "\x00"

// Publish tries each command that the daemon would send, in a form that changes
// nothing, with the daemon's user: rights cannot be asked for without a right
// to do so. Findings: publish, publish-acl, and for what is on also retained
// and manual.
func Publish(ctx context.Context, c *actions.Client, cfg PublishConfig) []Finding {
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	begin := time.Now()
	channel := cfg.channel(ctx, c)
	took := time.Since(begin)
	switch res, _, _ := c.Explain(channel[0].err); res {
	case actions.ResultTimeout, actions.ResultUnreachable, actions.ResultTLS, actions.ResultAuth, actions.ResultCluster:
		return []Finding{publishFailure("publish", c, channel[0].err)} // the rest would only say it again
	}
	out := []Finding{ok("publish", "redis answers in %v", took.Round(10*time.Microsecond)), tries("publish-acl", c, channel)}
	if cfg.Retain {
		out = append(out, tries("retained", c, cfg.retained(ctx, c)))
	}
	if cfg.Manual {
		out = append(out, tries("manual", c, cfg.manual(ctx, c)))
	}
	return out
}

// try is a command and how it ended.
type try struct {
	command string
	err     error
}

func (cfg PublishConfig) channel(ctx context.Context, c *actions.Client) []try {
	if cfg.Sharded {
		return []try{{"SPUBLISH", c.SPublish(ctx, cfg.Channel, doctorNote).Err()}}
	}
	return []try{{"PUBLISH", c.Publish(ctx, cfg.Channel, doctorNote).Err()}}
}

// retained: NX leaves the list of a running daemon alone, and a list that was
// not there is gone after a millisecond; XX on a member that cannot be adds
// nothing; a range from 1 to 0 is empty.
func (cfg PublishConfig) retained(ctx context.Context, c *actions.Client) []try {
	err := c.Do(ctx, "set", hotlist.ListKeyPrefix+cfg.Node, doctorNote, "nx", "px", 1).Err()
	if errors.Is(err, redis.Nil) {
		err = nil // it is there
	}
	return []try{
		{"SET", err},
		{"ZADD", c.Do(ctx, "zadd", hotlist.NodesKey, "xx", 0, noNode).Err()},
		{"ZREMRANGEBYSCORE", c.Do(ctx, "zremrangebyscore", hotlist.NodesKey, 1, 0).Err()},
	}
}

func (cfg PublishConfig) manual(ctx context.Context, c *actions.Client) []try {
	return []try{
		{"HGETALL", c.HGetAll(ctx, hotlist.ManualKey).Err()},
		{"SUBSCRIBE", subscribe(ctx, c, cfg)},
	}
}

func subscribe(ctx context.Context, c *actions.Client, cfg PublishConfig) error {
	var ps *redis.PubSub
	if cfg.Sharded {
		ps = c.SSubscribe(ctx, cfg.Channel)
	} else {
		ps = c.Subscribe(ctx, cfg.Channel)
	}
	defer ps.Close()
	_, err := ps.ReceiveTimeout(ctx, cfg.Timeout)
	return err
}

// tries sums up commands: the first kind of failure speaks for all.
func tries(name string, c *actions.Client, all []try) Finding {
	var good, bad []string
	var first error
	for _, x := range all {
		if x.err == nil {
			good = append(good, x.command)
			continue
		}
		bad = append(bad, x.command)
		if first == nil {
			first = x.err
		}
	}
	if first == nil {
		return ok(name, "allowed: %s", strings.Join(good, ", "))
	}
	f := publishFailure(name, c, first)
	f.Found = strings.Join(bad, ", ") + ": " + f.Found
	return f
}

// publishFailure words an error of Redis, without the passwords that it may
// echo; Report.Add escapes the rest.
func publishFailure(name string, c *actions.Client, err error) Finding {
	res, text, hint := c.Explain(err)
	switch res {
	case actions.ResultUnreachable, actions.ResultTimeout:
		hint = "is Redis running there, and is the address right? redis://host:port, rediss:// for TLS"
	case actions.ResultTLS:
		hint = "rediss:// needs a server with TLS; --publish.tls-ca-file names the authority that signed its certificate"
	case actions.ResultAuth:
		hint = "check --publish.username and --publish.password-file"
	}
	return fail(name, hint, "%s: %s", res, text)
}
