package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotsniff/hotsniff/actions"
	"github.com/hotsniff/hotsniff/hotlist"
	"github.com/hotsniff/hotsniff/hotlist/redistest"
)

// publishAs runs the checks as a user with these rights.
func publishAs(t *testing.T, s *redistest.Server, rights, password string) map[string]Finding {
	t.Helper()
	args := []any{"ACL", "SETUSER", "u", "reset", "on", ">S3cret-pw"}
	for _, r := range strings.Fields(rights) {
		args = append(args, r)
	}
	s.Do(args...)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := actions.Connect(actions.Connection{URL: s.URL("u"), PasswordFile: file, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	out := make(map[string]Finding)
	for _, f := range Publish(context.Background(), c, PublishConfig{Node: "n", Channel: hotlist.DefaultChannel, Retain: true, Manual: true, Timeout: 30 * time.Second}) {
		out[f.Name] = f
		if strings.Contains(f.String(), "S3cret") {
			t.Errorf("the password is in %q", f)
		}
	}
	return out
}

const leastRights = "resetchannels &hotsniff:hot ~hotsniff:* -@all +publish +set +zadd +zremrangebyscore +hgetall +subscribe"

func TestPublishTriesTheRights(t *testing.T) {
	s := redistest.Start(t)
	before := func() string {
		return s.Do("GET", hotlist.ListKeyPrefix+"n") + s.Do("ZRANGE", hotlist.NodesKey, 0, -1) + s.Do("DBSIZE")
	}
	s.Do("SET", hotlist.ListKeyPrefix+"n", "the list of a running daemon")
	s.Do("ZADD", hotlist.NodesKey, 1, "old")
	was := before()
	got := publishAs(t, s, leastRights, "S3cret-pw")
	for _, name := range []string{"publish", "publish-acl", "retained", "manual"} {
		expectFinding(t, name, got[name], OK, "", "")
	}
	if log := s.Do("ACL", "LOG"); log != "[]" {
		t.Errorf("denied: %s", log)
	}
	if now := before(); now != was {
		t.Errorf("the check changed %q to %q", was, now)
	}
	for _, c := range []struct{ without, name, found string }{
		{"+publish", "publish-acl", "PUBLISH: denied"},
		{"&hotsniff:hot", "publish-acl", "PUBLISH: denied"},
		{"+set", "retained", "SET: denied"},
		{"+zadd", "retained", "ZADD: denied"},
		{"+zremrangebyscore", "retained", "ZREMRANGEBYSCORE: denied"},
		{"~hotsniff:*", "retained", "SET, ZADD, ZREMRANGEBYSCORE: denied"},
		{"+hgetall", "manual", "HGETALL: denied"},
		{"+subscribe", "manual", "SUBSCRIBE: denied"},
	} {
		got := publishAs(t, s, strings.Replace(leastRights, c.without, "", 1), "S3cret-pw")
		expectFinding(t, "without "+c.without, got[c.name], Failure, c.found, "PROTOCOL.md")
		expectFinding(t, "without "+c.without, got["publish"], OK, "answers", "")
	}
	expectFinding(t, "wrong password", publishAs(t, s, leastRights, "S3cret-wrong")["publish"], Failure, "auth", "--publish.password-file")
}

func TestPublishOnATrialLeavesNothing(t *testing.T) {
	s := redistest.Start(t)
	publishAs(t, s, leastRights, "S3cret-pw")
	redistest.Eventually(t, 30*time.Second, "empty", func() bool { return s.Do("DBSIZE") == "0" })
}

func TestPublishAtServersInTrouble(t *testing.T) {
	s := redistest.Start(t)
	s.Do("CONFIG", "SET", "maxmemory", "1")
	got := publishAs(t, s, leastRights, "S3cret-pw")
	expectFinding(t, "full", got["retained"], Failure, "full", "maxmemory")
	expectFinding(t, "full", got["publish-acl"], OK, "PUBLISH", "")
	s.Do("CONFIG", "SET", "maxmemory", "0")
	s.Do("REPLICAOF", "127.0.0.1", redistest.FreePort(t))
	got = publishAs(t, s, leastRights, "S3cret-pw")
	expectFinding(t, "replica", got["retained"], Failure, "read_only", "primary")
	c, err := actions.Connect(actions.Connection{Addrs: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all := Publish(context.Background(), c, PublishConfig{Node: "n", Channel: "c", Retain: true, Timeout: 10 * time.Second})
	if len(all) != 1 {
		t.Errorf("%d findings of a server that is away", len(all))
	}
	expectFinding(t, "away", all[0], Failure, "unreachable", "Redis running")
}
