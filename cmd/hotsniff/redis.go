package main

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/hotsniff/hotsniff/actions"
	"github.com/hotsniff/hotsniff/internal/report"
)

// redisFlags say how to reach the Redis that carries the list. The daemon has
// them below publish.; there is none for a password, which every user of the
// host could read from the process table.
type redisFlags struct {
	URL            string        `name:"redis-url" placeholder:"URL" help:"Redis that carries the hot list: redis://[user@]host[:port][/db], rediss:// for TLS, unix:///path. No password in it: see the password file."`
	Addresses      []string      `name:"redis-addresses" placeholder:"HOST:PORT" help:"Further addresses: seeds of a cluster, or the sentinels."`
	Cluster        bool          `name:"cluster" help:"The servers form a Redis Cluster."`
	SentinelMaster string        `name:"sentinel-master" placeholder:"NAME" help:"The addresses are sentinels that watch this master."`
	Username       string        `name:"username" help:"ACL user."`
	PasswordFile   string        `name:"password-file" type:"path" placeholder:"FILE" help:"File that holds the password; read again for each connection. Default: redis-password in $$CREDENTIALS_DIRECTORY, if it is there."`
	SentinelUser   string        `name:"sentinel-username" placeholder:"NAME" help:"ACL user at the sentinels."`
	SentinelFile   string        `name:"sentinel-password-file" type:"path" placeholder:"FILE" help:"The same for the sentinels. Default: sentinel-password in $$CREDENTIALS_DIRECTORY, if it is there."`
	CAFile         string        `name:"tls-ca-file" type:"path" placeholder:"FILE" help:"PEM file of the authorities that are trusted (default: the system's)."`
	CertFile       string        `name:"tls-cert-file" type:"path" placeholder:"FILE" help:"PEM file of the client certificate."`
	KeyFile        string        `name:"tls-key-file" type:"path" placeholder:"FILE" help:"PEM file of its key."`
	ServerName     string        `name:"tls-server-name" placeholder:"NAME" help:"Name in the server's certificate (default: the host)."`
	Timeout        time.Duration `name:"timeout" default:"1s" help:"Longest wait for Redis: connecting, reading and writing, each."`
	Channel        string        `name:"channel" default:"hotsniff:hot" help:"Channel of the list."`
	Sharded        bool          `name:"sharded" help:"It is a sharded channel (cluster, Redis 7)."`
}

// given reports whether there is any Redis to reach.
func (f *redisFlags) given() bool { return f.URL != "" || len(f.Addresses) > 0 }

func (f *redisFlags) connection() actions.Connection {
	return actions.Connection{
		URL: f.URL, Addrs: f.Addresses, Cluster: f.Cluster, SentinelMaster: f.SentinelMaster,
		Username: f.Username, PasswordFile: credential(f.PasswordFile, "redis-password"),
		SentinelUsername: f.SentinelUser, SentinelPasswordFile: credential(f.SentinelFile, "sentinel-password"),
		TLS:     actions.TLSFiles{CAFile: f.CAFile, CertFile: f.CertFile, KeyFile: f.KeyFile, ServerName: f.ServerName},
		Timeout: f.Timeout,
	}
}

// credential returns path, or where systemd put the credential of that name
// (LoadCredential= in the unit), or "".
func credential(path, name string) string {
	dir := os.Getenv("CREDENTIALS_DIRECTORY")
	if path != "" || dir == "" {
		return path
	}
	file := filepath.Join(dir, name)
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}

// connect prepares a client for a command at the terminal. Nothing is dialed
// yet.
func (f *redisFlags) connect() (*actions.Client, error) {
	if !f.given() {
		return nil, withHint(usageError{errors.New("--redis-url: needed to find the hot list")}, "for example --redis-url redis://127.0.0.1:6379")
	}
	client, err := actions.Connect(f.connection())
	if err != nil {
		return nil, usageError{err}
	}
	quiet(client)
	return client, nil
}

// quiet silences the client: each failure is told once, by the command.
func quiet(client *actions.Client) {
	actions.RouteClientLog(slog.New(slog.DiscardHandler), client)
}

// redisError is err with advice. What a server says may go to a terminal, so
// it is printed like a key.
func redisError(client *actions.Client, err error) error {
	if errors.Is(err, actions.ErrManualFull) {
		return withHint(err, "remove some with 'hotsniff unpin KEY'")
	}
	res, text, hint := client.Explain(err)
	err = errors.New("redis: " + report.PrintableKey(text, 0))
	switch res {
	case actions.ResultUnreachable, actions.ResultTimeout:
		hint = "is Redis running there, and is the address right? redis://host:port, rediss:// for TLS"
	case actions.ResultTLS:
		hint = "rediss:// needs a server with TLS; --tls-ca-file names the authority that signed its certificate"
	case actions.ResultAuth:
		hint = "check --username and --password-file"
	}
	if hint == "" {
		return err
	}
	return withHint(err, hint)
}
