package privacy

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
)

func policy(t *testing.T, cfg Config) *Policy {
	t.Helper()
	p, err := New(cfg)
	if err != nil || p == nil {
		t.Fatalf("New(%+v): %v, %v", cfg, p, err)
	}
	return p
}

func shown(p *Policy, key string) string {
	s, _ := p.Key([]byte(key))
	return s
}

func TestPatternsFindIdentifiers(t *testing.T) {
	p := policy(t, Config{Keys: Pattern})
	for key, want := range map[string]string{
		"user:4711:cart": "user:*:cart",
		"user:1:2":       "user:*:*",
		"config":         "config",
		"session:550e8400-e29b-41d4-a716-446655440000": "session:*",
		"mail:alice.smith@example.com:inbox":           "mail:*:inbox",
		"ip:10.1.2.3":                                  "ip:*",
		"ip:2001:db8::17:rate":                         "ip:*:rate",
		"obj:507f1f77bcf86cd799439011":                 "obj:*",
		"tok:q9ZkV3xN0bTfWm2LsYd7RgHc":                 "tok:*",
		"averyveryverylongwordwithoutdigits":           "averyveryverylongwordwithoutdigits",
		"a:b:1":                                        "a:b:*",
		"":                                             "",
		"\xff\x00:12":                                  "\xff\x00:*",
	} {
		if got := shown(p, key); got != want {
			t.Errorf("%q: got %q, want %q", key, got, want)
		}
	}
}

func TestOwnRewritesComeFirst(t *testing.T) {
	p := policy(t, Config{Keys: Pattern, Rewrites: []Rewrite{{`^user:(\w+):(\w+)$`, "user:*:$2"}, {`staff-\d`, "staff"}}})
	for key, want := range map[string]string{"user:alice:cart": "user:*:cart", "staff-7:x": "staff:x", "other:9": "other:*"} {
		if got := shown(p, key); got != want {
			t.Errorf("%q: got %q, want %q", key, got, want)
		}
	}
	if _, err := New(Config{Keys: Pattern, Rewrites: []Rewrite{{"(", ""}}}); err == nil {
		t.Error("a bad expression is taken")
	}
}

func TestHashesAreKeyed(t *testing.T) {
	a := policy(t, Config{Keys: Hash, Secret: []byte("0123456789abcdef")})
	b := policy(t, Config{Keys: Hash, Secret: []byte("0123456789abcdeg")})
	if !regexp.MustCompile(`^#[0-9a-f]{16}$`).MatchString(shown(a, "user:1")) {
		t.Errorf("got %q", shown(a, "user:1"))
	}
	if shown(a, "user:1") != shown(policy(t, Config{Keys: Hash, Secret: []byte("0123456789abcdef")}), "user:1") {
		t.Error("the same secret gives other hashes: nodes would not agree")
	}
	if shown(a, "user:1") == shown(b, "user:1") || shown(a, "user:1") == shown(a, "user:2") {
		t.Error("another secret or key gives the same hash")
	}
	if _, err := New(Config{Keys: Hash, Secret: []byte("short")}); err == nil {
		t.Error("a secret that can be tried out is taken")
	}
}

func TestTruncateKeepsCharacters(t *testing.T) {
	p := policy(t, Config{Keys: Truncate, Keep: 3})
	for key, want := range map[string]string{"user:1": "use…", "abc": "abc", "äöüß": "äöü…", "": "", "\xff\xfe\xfd\xfc": "\xff\xfe\xfd…"} {
		if got := shown(p, key); got != want {
			t.Errorf("%q: got %q, want %q", key, got, want)
		}
	}
	if _, err := New(Config{Keys: Truncate}); err == nil {
		t.Error("keeping nothing is taken")
	}
}

func TestDeniedKeysAreHiddenInEveryMode(t *testing.T) {
	for _, mode := range []Mode{Plain, Pattern, Hash, Truncate} {
		p := policy(t, Config{Keys: mode, Keep: 8, Secret: make([]byte, 32), Deny: []string{"vip:*", "a?c", "[x]"}})
		for key, want := range map[string]bool{"vip:alice\nx": true, "vip:": true, "abc": true, "[x]": true, "x": false, "ac": false, "xvip:": false} {
			if got := shown(p, key) == Hidden; got != want || p.Denied([]byte(key)) != want {
				t.Errorf("%s: %q: hidden %v, want %v", Modes[mode], key, got, want)
			}
		}
	}
}

func TestClientsLoseTheirLastBytes(t *testing.T) {
	v4 := [16]byte{10: 0xff, 11: 0xff, 12: 10, 13: 1, 14: 2, 15: 3}
	v6 := [16]byte{0: 0x20, 1: 1, 2: 0xd, 3: 0xb8, 5: 7, 6: 9, 15: 1}
	network := policy(t, Config{Clients: ClientsNetwork})
	if got, ok := network.Client(v4); !ok || got != ([16]byte{10: 0xff, 11: 0xff, 12: 10, 13: 1, 14: 2}) {
		t.Errorf("got %v", got)
	}
	if got, ok := network.Client(v6); !ok || got != ([16]byte{0: 0x20, 1: 1, 2: 0xd, 3: 0xb8, 5: 7}) {
		t.Errorf("got %v", got)
	}
	if got, ok := policy(t, Config{Clients: ClientsNone}).Client(v4); ok || got != ([16]byte{}) {
		t.Errorf("got %v, %v; want none", got, ok)
	}
}

func TestPlainNeedsNoPolicy(t *testing.T) {
	if p, err := New(Config{Rewrites: []Rewrite{{"a", "b"}}}); p != nil || err != nil {
		t.Errorf("got %v, %v; want none", p, err)
	}
}

// TestMemoryIsBounded shows more names than are remembered, from several
// goroutines.
func TestMemoryIsBounded(t *testing.T) {
	p := policy(t, Config{Keys: Pattern})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range maxRemembered {
				if got := shown(p, fmt.Sprintf("k%d:%d", g, i)); got != "k*:*" {
					t.Errorf("got %q", got)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := len(p.known); n == 0 || n > maxRemembered {
		t.Errorf("%d names remembered, want 1 to %d", n, maxRemembered)
	}
}

func FuzzKey(f *testing.F) {
	for _, key := range []string{"user:4711", "a@b.c", "::::::::", strings.Repeat("0", 100), "\xff1"} {
		f.Add([]byte(key))
	}
	p, err := New(Config{Keys: Pattern})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, key []byte) {
		if got := shown(p, string(key)); strings.ContainsAny(got, "0123456789") {
			t.Errorf("%q is shown as %q, with digits", key, got)
		}
	})
}
