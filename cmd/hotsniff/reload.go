package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/hotsniff/hotsniff/internal/config"
)

// liveKeys are the settings that a reload changes. All others hold until a
// restart: what they set up, devices and sockets, is open. Rules, pins and bans
// change too; what web.config.file and password files hold is read anew by
// whoever uses it.
var liveKeys = []string{"cooldown", "log.level", "threshold", "top"}

// reloader applies the configuration anew while the daemon runs: by SIGHUP and
// by POST /-/reload. What is bad changes nothing at all.
type reloader struct {
	d     *daemon
	level *slog.LevelVar
	serve func(top int, settings map[string]string) // puts a new handler in

	mu       sync.Mutex // one reload at a time
	a        *app       // as started, or as reloaded last
	settings map[string]string
}

// errNoFile: flags and environment cannot change while the program runs.
var errNoFile = errors.New("there is no configuration file to load: start with --config.file")

// reload reads the file again and returns in one line what came of it.
func (r *reloader) reload() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.d.notify != nil { // else this is no daemon
		defer r.d.notify.reloading()()
	}
	text, err := r.try()
	r.d.monitor.Reloaded(err == nil)
	if err != nil {
		err = errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
		r.d.log.Error("configuration not loaded, the old one stays", "error", err)
	}
	return text, err
}

func (r *reloader) try() (string, error) {
	if r.a.file == nil {
		return "", errNoFile
	}
	next := &app{stdio: r.a.stdio, ctx: r.a.ctx, args: r.a.args}
	var c cli
	if _, err := next.parse(&c); err != nil {
		return "", err
	}
	if err := c.Run.check(next); err != nil {
		return "", err
	}
	cfg, err := c.Run.engineConfig(next)
	if err != nil {
		return "", err
	}
	changed, restart := r.compare(next)
	r.d.engine.Reconfigure(cfg.Detector, c.Run.Top)
	r.d.setManual(manualEntries(next.file))
	r.level.UnmarshalText([]byte(c.Run.LogLevel)) // kong checked the value
	r.serve(c.Run.Top, r.settings)
	r.a = next
	r.d.log.Info("configuration loaded", "changed", list(changed))
	text := "loaded; changed: " + list(changed)
	if len(restart) > 0 {
		r.d.log.Warn("some changed settings need a restart", "settings", list(restart))
		text += "; needs a restart: " + list(restart)
	}
	return text, nil
}

// compare returns what the configuration of next changes, and what it would
// change after a restart. It takes the former into the settings that are shown.
func (r *reloader) compare(next *app) (changed, restart []string) {
	after := shownSettings(next.k)
	before := r.settings
	r.settings = make(map[string]string, len(after))
	for _, f := range next.k.Flags() {
		key, old := f.Name, before[f.Name]
		switch {
		case after[key] == old:
		case slices.Contains(liveKeys, key):
			changed, old = append(changed, key), after[key]
		default:
			restart = append(restart, key)
		}
		if _, shown := after[key]; shown {
			r.settings[key] = old
		}
	}
	if !slices.EqualFunc(r.a.file.Rules(), next.file.Rules(), func(a, b config.Rule) bool { a.Line, b.Line = 0, 0; return a == b }) {
		changed = append(changed, "rules")
	}
	if !reflect.DeepEqual(manualEntries(r.a.file), manualEntries(next.file)) {
		changed = append(changed, "pinned or banned")
	}
	if !slices.EqualFunc(r.a.file.Rewrites(), next.file.Rewrites(), func(a, b config.Rewrite) bool { a.Line, b.Line = 0, 0; return a == b }) {
		restart = append(restart, "privacy.rewrite")
	}
	if !slices.EqualFunc(r.a.file.Rewrites(), next.file.Rewrites(), func(a, b config.Rewrite) bool { return a.Match == b.Match && a.To == b.To }) {
		restart = append(restart, "privacy.rewrite")
	}
	slices.Sort(changed)
	slices.Sort(restart)
	return changed, restart
}

func list(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// onHangup reloads at each SIGHUP until ctx ends. hangups was registered
// before the daemon said that it runs: an early one must not end it.
func (r *reloader) onHangup(ctx context.Context, hangups <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			r.reload() // which has logged what came of it
		}
	}
}

// hangups asks for SIGHUP. Several that come together are one.
func hangups() (c chan os.Signal, stop func()) {
	c = make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}
