package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
	"github.com/coreos/go-systemd/v22/activation"
	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"
	"golang.org/x/sync/errgroup"
)

// webFlags say where and how the metrics and the API are served.
type webFlags struct {
	Listen        []string `name:"web.listen-address" default:"127.0.0.1:9379" help:"Addresses of the metrics and the API."`
	WebConfig     string   `name:"web.config.file" type:"path" placeholder:"FILE" help:"TLS, client certificates and basic authentication, in the format of the Prometheus exporter toolkit."`
	SystemdSocket bool     `name:"web.systemd-socket" help:"Listen on the sockets that systemd hands over instead."`
	Pprof         bool     `name:"web.enable-pprof" help:"Serve /debug/pprof/. Its dumps hold key names."`
}

const (
	// stopTimeout bounds the wait for open HTTP requests at the end: the
	// daemon promises to be gone within 2 s.
	stopTimeout = time.Second

	// maxHeaderBytes bounds what a client may send before it is known.
	maxHeaderBytes = 16 << 10
)

// lowPorts reports whether listening takes CAP_NET_BIND_SERVICE.
func (f *webFlags) lowPorts() bool {
	return !f.SystemdSocket && slices.ContainsFunc(f.Listen, func(addr string) bool {
		_, port, err := net.SplitHostPort(addr)
		n, bad := strconv.Atoi(port)
		return err == nil && (bad != nil || n > 0 && n < 1024) // names are mostly those of low ports
	})
}

// validate checks the addresses and the file of the exporter toolkit.
func (f *webFlags) validate(a *app) error {
	if len(f.Listen) == 0 && !f.SystemdSocket {
		return a.blame("web.listen-address", errors.New("want an address"))
	}
	for _, addr := range f.Listen {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return a.blame("web.listen-address", fmt.Errorf("want an address such as 127.0.0.1:9379, not %q", addr))
		}
	}
	err := web.Validate(f.WebConfig)
	if err == nil {
		return nil
	}
	return cmp.Or(a.inFile("web.config.file", err), fmt.Errorf("--web.config.file: %w", err))
}

// listen opens the listeners.
func (f *webFlags) listen() ([]net.Listener, error) {
	if f.SystemdSocket {
		all, err := activation.Listeners()
		if err == nil && len(all) == 0 {
			err = errors.New("--web.systemd-socket: systemd has handed over no socket")
		}
		return all, err
	}
	var all []net.Listener
	for _, addr := range f.Listen {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			closeAll(all)
			return nil, withHint(err, "choose another address with --web.listen-address")
		}
		all = append(all, l)
	}
	return all, nil
}

func closeAll(all []net.Listener) {
	for _, l := range all {
		l.Close()
	}
}

// addresses names the listeners for the log.
func addresses(all []net.Listener) []string {
	var out []string
	for _, l := range all {
		out = append(out, l.Addr().String())
	}
	return out
}

// warnIfOpen says when strangers may read the key names.
func (f *webFlags) warnIfOpen(all []net.Listener, log *slog.Logger) {
	if authenticates(f.WebConfig) {
		return
	}
	var open []net.Listener
	for _, l := range all {
		if !loopback(l.Addr()) {
			open = append(open, l)
		}
	}
	if len(open) > 0 {
		log.Warn("everyone who reaches this address can read the key names; set up authentication with --web.config.file", "listen", addresses(open))
	}
}

// loopback reports whether only this machine reaches addr.
func loopback(addr net.Addr) bool {
	if addr.Network() == "unix" {
		return true
	}
	ap, err := netip.ParseAddrPort(addr.String())
	return err == nil && ap.Addr().Unmap().IsLoopback()
}

// authenticates reports whether a file that web.Validate accepted asks who the
// client is.
func authenticates(path string) bool {
	var c struct {
		TLS struct {
			ClientAuth string `yaml:"client_auth_type"`
		} `yaml:"tls_server_config"`
		Users map[string]string `yaml:"basic_auth_users"`
	}
	if path == "" {
		return false
	}
	data, err := os.ReadFile(path)
	if err != nil || yaml.Unmarshal(data, &c) != nil {
		return false
	}
	return len(c.Users) > 0 || c.TLS.ClientAuth == "RequireAndVerifyClientCert"
}

// serveWeb serves handler on every listener until ctx ends. Each has a server
// of its own, because the toolkit sets up TLS in the server it is given.
func serveWeb(ctx context.Context, all []net.Listener, handler http.Handler, config string, log *slog.Logger) error {
	g, ctx := errgroup.WithContext(ctx)
	systemd := false // the listeners are open already
	flags := &web.FlagConfig{WebConfigFile: &config, WebSystemdSocket: &systemd}
	slots := make(chan struct{}, maxConnections)
	for _, l := range all {
		server := &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       10 * time.Second,
			WriteTimeout:      30 * time.Second,
			IdleTimeout:       time.Minute,
			MaxHeaderBytes:    maxHeaderBytes,
			BaseContext:       func(net.Listener) context.Context { return ctx }, // ends the streams of the page
			ErrorLog:          serverLog(log),
		}
		g.Go(func() error {
			<-ctx.Done()
			stop, cancel := context.WithTimeout(context.Background(), stopTimeout)
			defer cancel()
			if server.Shutdown(stop) != nil {
				server.Close()
			}
			return nil
		})
		g.Go(func() error {
			if err := web.Serve(&limitedListener{l, slots}, server, flags, slog.New(warnings{log.Handler()})); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
	}
	return g.Wait()
}

// warnings is a handler without what is below a warning: the toolkit tells of
// each listener what the first line of the log tells of all.
type warnings struct{ slog.Handler }

// Enabled implements slog.Handler.
func (w warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && w.Handler.Enabled(ctx, l)
}

// shownSettings returns the flags of a command with their values, for
// /api/v1/status. No flag holds a secret, those are in files; a password in a
// URL, which is refused anyway, is cut.
func shownSettings(k *kong.Context) map[string]string {
	out := map[string]string{}
	for _, f := range k.Flags() {
		if f.Name == "help" {
			continue
		}
		text := fmt.Sprint(f.Target.Interface())
		if f.Name == "privacy.deny" && f.Target.Len() > 0 {
			text = fmt.Sprintf("%d not shown", f.Target.Len()) // they name what is to be hidden
		}
		if u, err := url.Parse(text); err == nil && u.User != nil {
			text = u.Redacted()
		}
		out[f.Name] = text
	}
	return out
}
