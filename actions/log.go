package actions

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// RouteClientLog sends what go-redis itself writes to log, at debug level:
// each failure is already reported once by whoever used the client. Passwords
// of c are cut out. The setting is global to go-redis, so a program calls this
// once, for the client it keeps.
func RouteClientLog(log *slog.Logger, c *Client) { redis.SetLogger(clientLog{log, c.redact}) }

type clientLog struct {
	log    *slog.Logger
	redact *redactor
}

// Printf implements go-redis' logger.
func (l clientLog) Printf(ctx context.Context, format string, v ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "redis client", "text", l.redact.clean(fmt.Sprintf(format, v...)))
	}
}

// redactor replaces secrets in texts. Servers before Redis 6 answer HELLO with
// an error that repeats its arguments.
type redactor struct {
	mu      sync.Mutex
	secrets []string
}

func (r *redactor) add(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	const most = 8 // a password that changes often leaves the oldest behind
	for _, s := range r.secrets {
		if s == secret {
			return
		}
	}
	if secret == "" {
		return
	}
	if len(r.secrets) == most {
		r.secrets = r.secrets[1:]
	}
	r.secrets = append(r.secrets, secret)
}

func (r *redactor) clean(s string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, secret := range r.secrets {
		s = strings.ReplaceAll(s, secret, "[password]")
	}
	return s
}
