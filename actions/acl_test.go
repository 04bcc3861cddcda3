package actions

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsniff/hotsniff/hotlist"
	"github.com/hotsniff/hotsniff/hotlist/redistest"
)

// feature is one line of the table of rights in docs/PROTOCOL.md, with a
// program that uses all of it and says whether that worked.
type feature struct {
	name   string
	rights string
	works  func(t *testing.T, s *redistest.Server) bool
}

func aclUser(t *testing.T, s *redistest.Server, rights []string) {
	t.Helper()
	args := []any{"ACL", "SETUSER", "u", "reset", "on", ">pw"}
	for _, r := range rights {
		args = append(args, r)
	}
	s.Do(args...)
}

// publishes runs a publisher as the user and reports whether everything that
// cfg asks for went well.
func publishes(cfg Config) func(t *testing.T, s *redistest.Server) bool {
	return func(t *testing.T, s *redistest.Server) bool {
		if cfg.Manual {
			s.Do("HSET", hotlist.ManualKey, "pinned", `{"schema":"hotsniff.manual/v1","op":"pin","until":9999999999999}`)
		}
		cfg := cfg
		cfg.Connection = Connection{URL: s.URL("u"), PasswordFile: passwordFile(t, "pw")}
		p := start(t, cfg)
		defer p.stop()
		p.Publish(listOf("a"))
		redistest.Eventually(t, patience, "tried", func() bool {
			st := p.Stats()
			retained, manual := uint64(0), uint64(0)
			for r := range NumResults {
				retained += st.Retained[r]
				manual += st.Manual.Reads[r]
			}
			return st.DurationCount > 0 && (!cfg.Retain || retained > 0 || st.LastError.lost()) && (!cfg.Manual || manual > 0)
		})
		if cfg.Manual && p.Stats().Manual.Reads[ResultOK] > 0 {
			// A change that is announced must be seen long before the next poll.
			s.Do("HDEL", hotlist.ManualKey, "pinned")
			heard := false
			for deadline := time.Now().Add(manualPoll / 10); !heard && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
				s.Do("PUBLISH", hotlist.DefaultChannel, `{"schema":"hotsniff.manual/v1"}`)
				heard = len(p.Manual().Load().Entries()) == 0
			}
			if !heard {
				return false
			}
		}
		st := p.Stats()
		return st.DurationCount == st.Results[ResultOK] &&
			(!cfg.Retain || st.Retained[ResultOK] > 0) && (!cfg.Manual || st.Manual.Reads[ResultOK] > 0)
	}
}

func asUser(t *testing.T, s *redistest.Server) redis.UniversalClient {
	c := redis.NewClient(&redis.Options{Addr: s.Addr, Username: "u", Password: "pw", Protocol: 2, DisableIdentity: true, MaxRetries: -1})
	t.Cleanup(func() { c.Close() })
	return c
}

func subscribes(cfg hotlist.WatchConfig) func(t *testing.T, s *redistest.Server) bool {
	return func(t *testing.T, s *redistest.Server) bool {
		w := hotlist.Watch(context.Background(), asUser(t, s), cfg)
		defer w.Close()
		redistest.Eventually(t, patience, "tried", func() bool { st := w.Status(); return st.Connected || st.LastError != nil })
		st := w.Status()
		return st.Connected && st.LastError == nil
	}
}

func pins(t *testing.T, s *redistest.Server) bool {
	m := ManualTarget{Client: asUser(t, s)}
	ctx := context.Background()
	s.Do("HSET", hotlist.ManualKey, "old", `{"schema":"hotsniff.manual/v1","op":"pin","until":1}`)
	pinErr := m.Pin(ctx, "k", time.Time{}, 0, Rule{})
	_, unpinErr := m.Unpin(ctx, "k")
	return pinErr == nil && unpinErr == nil
}

var features = []feature{
	{"publish", "resetchannels &hotsniff:hot -@all +publish", publishes(Config{})},
	{"publish and retain", "resetchannels &hotsniff:hot ~hotsniff:* -@all +publish +set +zadd +zremrangebyscore", publishes(Config{Retain: true})},
	{"publish, retain and manual entries", "resetchannels &hotsniff:hot ~hotsniff:* -@all +publish +set +zadd +zremrangebyscore +hgetall +subscribe", publishes(Config{Retain: true, Manual: true})},
	{"subscribe only", "resetchannels &hotsniff:hot -@all +subscribe", subscribes(hotlist.WatchConfig{NoRetained: true})},
	{"subscribe and read retained lists", "resetchannels &hotsniff:hot %R~hotsniff:* -@all +subscribe +zrevrange +getrange", subscribes(hotlist.WatchConfig{})},
	{"pin, unpin and ban", "resetchannels &hotsniff:hot ~hotsniff:manual -@all +hgetall +hset +hdel +publish", pins},
}

func TestLeastRights(t *testing.T) {
	s := redistest.Start(t)
	s.Do("ZADD", hotlist.NodesKey, 1, "n")
	for _, f := range features {
		t.Run(f.name, func(t *testing.T) {
			rights := strings.Fields(f.rights)
			aclUser(t, s, rights)
			s.Do("ACL", "LOG", "RESET")
			if !f.works(t, s) {
				t.Fatalf("%s is not enough: %s", f.rights, s.Do("ACL", "LOG"))
			}
			if log := s.Do("ACL", "LOG"); log != "[]" {
				t.Errorf("something was denied although it works: %s", log)
			}
			for i, r := range rights {
				if r == "-@all" || r == "resetchannels" {
					continue // the start, not a grant
				}
				aclUser(t, s, slices.Delete(slices.Clone(rights), i, i+1))
				if f.works(t, s) {
					t.Errorf("works without %s too", r)
				}
			}
		})
	}
}

func TestLeastRightsInACluster(t *testing.T) {
	ss := startCluster(t)
	const rights = "resetchannels &hotsniff:hot ~hotsniff:* -@all +publish +set +zadd +zremrangebyscore +hgetall +subscribe +cluster|slots +command"
	for _, s := range ss {
		aclUser(t, s, strings.Fields(rights))
		s.Do("ACL", "LOG", "RESET")
	}
	p := start(t, Config{Retain: true, Manual: true, Connection: Connection{
		Addrs: []string{ss[0].Addr}, Cluster: true, Username: "u", PasswordFile: passwordFile(t, "pw"),
	}})
	p.Publish(listOf("a"))
	redistest.Eventually(t, patience, "all three features used", func() bool {
		st := p.Stats()
		return st.Results[ResultOK] > 0 && st.Retained[ResultOK] > 0 && st.Manual.Reads[ResultOK] > 0
	})
	for _, s := range ss {
		if log := s.Do("ACL", "LOG"); log != "[]" {
			t.Errorf("denied: %s", log)
		}
	}
}
