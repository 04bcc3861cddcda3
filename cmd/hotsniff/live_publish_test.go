package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hotsniff/hotsniff/hotlist/redistest"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

// publishScene is a daemon that captures at one Redis and publishes at others,
// a subscriber on a pipe, and load with one hot key, all through the program.
type publishScene struct {
	t      *testing.T
	daemon *daemonProcess
	watch  *watchProcess
}

// newPublishScene starts them. to are the flags that lead to the publishing
// servers: as they are for watch, below publish. for the daemon, to which
// daemonOnly are added.
func newPublishScene(t *testing.T, to, watchOnly, daemonOnly []string) *publishScene {
	t.Helper()
	redis := live(t)
	flags := append([]string{"--node", "n1", "--log.level", "debug"}, daemonOnly...)
	for _, f := range to {
		flags = append(flags, strings.Replace(f, "--", "--publish.", 1))
	}
	s := &publishScene{t: t, daemon: startDaemon(t, redis.Port, flags...)}
	s.watch = startWatch(t, append(watchOnly, to...)...)
	ctx, cancel := context.WithCancel(context.Background())
	load := &testkit.Workload{Addr: redis.Addr(), Conns: 2, Rate: 1000, HotKey: "star",
		Share: func(time.Duration) float64 { return 0.5 }, Keys: 1000, Seed: 1}
	loaded := make(chan error, 1)
	go func() { loaded <- load.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-loaded })
	return s
}

// sees waits until the newest event of a key is this one.
func (s *publishScene) sees(key, event string) {
	s.t.Helper()
	eventually(s.t, key+" is "+event+" for the subscriber", func() bool { return s.watch.last(key).Event == event })
}

// round is one round of all: a key is hot, another pinned, the first banned,
// and back. by are the flags of the person who does it.
func (s *publishScene) round(by ...string) {
	s.t.Helper()
	s.sees("star", "hot")
	ok(s.t, append([]string{"pin", "sale", "--ttl", "1h"}, by...)...)
	s.sees("sale", "hot")
	ok(s.t, append([]string{"ban", "star"}, by...)...)
	s.sees("star", "gone")
	ok(s.t, append([]string{"unpin", "sale"}, by...)...)
	ok(s.t, append([]string{"unpin", "star"}, by...)...)
	s.sees("sale", "gone")
	s.sees("star", "hot")
}

// end stops the daemon, whose last list is empty.
func (s *publishScene) end() {
	s.t.Helper()
	if _, err := s.daemon.stop(s.t, syscall.SIGTERM); err != nil {
		s.t.Errorf("the daemon ended with %v\n%s", err, s.daemon.logText())
	}
	s.sees("star", "gone")
}

func TestPublishThroughAClusterOnAShardedChannel(t *testing.T) {
	live(t) // skips before three servers are started
	ss := redistest.StartCluster(t, 3)
	to := []string{"--redis-addresses", ss[0].Addr + "," + ss[1].Addr, "--cluster", "--sharded"}
	s := newPublishScene(t, to, nil, nil)
	s.round(to...)
	table := ok(t, append([]string{"watch", "--once", "--format", "table"}, to...)...)
	if !strings.Contains(table, "star ") || !strings.Contains(table, " at 1 nodes") {
		t.Errorf("watch --once: got\n%s", table)
	}
	s.end()
	for _, server := range ss {
		if got := server.Do("PUBSUB", "CHANNELS"); got != "[]" {
			t.Errorf("somebody subscribed to an ordinary channel: %s", got)
		}
	}
}

func TestPublishFollowsASentinelsMaster(t *testing.T) {
	live(t)
	first := redistest.Start(t)
	second := redistest.Start(t, "--replicaof", fmt.Sprint("127.0.0.1 ", first.Port))
	eventually(t, "the replica is in sync", func() bool { return strings.Contains(second.Do("INFO", "replication"), "master_link_status:up") })
	conf := write(t, "sentinel.conf", fmt.Sprintf("sentinel monitor m 127.0.0.1 %d 1\nsentinel down-after-milliseconds m 1000\nsentinel failover-timeout m 3000\n", first.Port))
	sentinel := redistest.StartSentinel(t, conf)
	eventually(t, "the sentinel knows the replica", func() bool { return strings.Contains(sentinel.Do("INFO", "sentinel"), "slaves=1") })

	to := []string{"--redis-url", "redis://" + sentinel.Addr, "--sentinel-master", "m"}
	s := newPublishScene(t, to, nil, nil)
	s.round(to...)
	first.Kill()
	eventually(t, "failed over", func() bool { return strings.Contains(second.Do("INFO", "replication"), "role:master") })
	eventually(t, "a pin at the new master", func() bool {
		code, _, _ := hotsniff(t, "", append([]string{"pin", "after", "--ttl", "1h"}, to...)...)
		return code == 0
	})
	s.sees("after", "hot")
	if got := s.watch.last("star").Event; got != "hot" {
		t.Errorf("star is %s after the failover", got)
	}
	s.end()
}

// TestPublishOverTLSWithLeastRights: three users, each with no more than
// docs/PROTOCOL.md says, over TLS with client certificates; no password is on
// a command line, in a log or in an API.
func TestPublishOverTLSWithLeastRights(t *testing.T) {
	live(t)
	dir := t.TempDir()
	certificate(t, dir)
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	port := fmt.Sprint(redistest.FreePort(t))
	server := redistest.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert)
	secrets := map[string]string{"daemon": "S3cret-daemon", "app": "S3cret-app", "person": "S3cret-person"}
	for user, rights := range map[string]string{
		"daemon": "resetchannels &hotsniff:hot ~hotsniff:* -@all +publish +set +zadd +zremrangebyscore +hgetall +subscribe",
		"app":    "resetchannels &hotsniff:hot %R~hotsniff:* -@all +subscribe +zrevrange +getrange",
		"person": "resetchannels &hotsniff:hot ~hotsniff:manual -@all +hgetall +hset +hdel +publish",
	} {
		args := []any{"ACL", "SETUSER", user, "reset", "on", ">" + secrets[user]}
		for _, r := range strings.Fields(rights) {
			args = append(args, r)
		}
		server.Do(args...)
		if err := os.WriteFile(filepath.Join(dir, user), []byte(secrets[user]+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	as := func(user string) []string {
		return []string{"--redis-url", "rediss://127.0.0.1:" + port, "--tls-ca-file", cert, "--tls-cert-file", cert, "--tls-key-file", key,
			"--username", user, "--password-file", filepath.Join(dir, user)}
	}
	var publish []string
	for _, f := range as("daemon") {
		publish = append(publish, strings.Replace(f, "--", "--publish.", 1))
	}
	s := newPublishScene(t, nil, as("app"), publish)
	s.round(as("person")...)
	if log := server.Do("ACL", "LOG"); log != "[]" {
		t.Errorf("denied: %s", log)
	}
	// Each user can do its own part only.
	for _, args := range [][]string{append([]string{"pin", "k"}, as("app")...), append([]string{"watch", "--once"}, as("person")...)} {
		code, out, errOut := hotsniff(t, "", args...)
		if code != 1 || out != "" || !strings.Contains(errOut, "NOPERM") || !strings.Contains(errOut, "\nhint: ") {
			t.Errorf("%v: got %d, %q, %q", args[0], code, out, errOut)
		}
	}
	status, err := s.daemon.get("/api/v1/status")
	if err != nil {
		t.Fatal(err)
	}
	s.end()
	for _, secret := range secrets {
		noSecret(t, "the log", s.daemon.logText(), []string{secret})
		noSecret(t, "the status", status, []string{secret})
	}
}
