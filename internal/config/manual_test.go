package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPinnedAndBannedKeys(t *testing.T) {
	f, err := Parse("h.yml", []byte(`
pinned:
  - session:popular
  - 42
  - ""
  - key: "sale"
    from: 2026-11-27T08:00:00+01:00
    until: 2026-11-28T00:00:00Z
    action: replicate
    ttl: 3s
    copies: 4
banned:
  - key_base64: /wA=
    until: 2026-12-01T00:00:00Z
threshold: 0.05
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []ManualKey{
		{Line: 3, Key: "session:popular"}, {Line: 4, Key: "42"}, {Line: 5},
		{Line: 6, Key: "sale", From: time.Date(2026, 11, 27, 7, 0, 0, 0, time.UTC), Until: time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC),
			Action: "replicate", TTL: 3 * time.Second, Copies: 4},
		{Line: 13, Key: "\xff\x00", Banned: true, Until: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)},
	}
	if d := cmp.Diff(f.Manual(), want); d != "" {
		t.Error(d)
	}
	if err := f.CheckKeys([]string{"threshold"}); err != nil {
		t.Errorf("the lists are taken for flags: %v", err)
	}
}

func TestManualMistakesNameTheLine(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"no list", "pinned: a\n", "h.yml:1: pinned: want a list of keys"},
		{"null", "banned:\n  - \n", "h.yml:2: banned: want a key, or fields such as key and until"},
		{"list in a list", "banned:\n  - [a]\n", "h.yml:2: banned: want a key, or fields such as key and until"},
		{"no key", "pinned:\n  - until: 2026-11-28T00:00:00Z\n", "h.yml:2: pinned: key or key_base64 is needed"},
		{"two keys", "pinned:\n  - key: a\n    key_base64: YQ==\n", "h.yml:3: pinned: key_base64: the key is already given"},
		{"twice", "pinned:\n  - a\n  - a\n", "h.yml:3: pinned: this key is given already in line 2"},
		{"pinned and banned", "pinned:\n  - a\nbanned:\n  - key: a\n", "h.yml:4: banned: this key is given already in line 2"},
		{"bad base64", "pinned:\n  - key_base64: '*'\n", `h.yml:2: pinned: key_base64: want base64, not "*"`},
		{"bad time", "pinned:\n  - key: a\n    from: tomorrow\n", `h.yml:3: pinned: from: want a time such as 2026-11-27T08:00:00+01:00, not "tomorrow"`},
		{"ends before it begins", "banned:\n  - key: a\n    from: 2026-11-28T00:00:00Z\n    until: 2026-11-27T00:00:00Z\n", "h.yml:2: banned: until is not after from"},
		{"bad action", "pinned:\n  - key: a\n    action: burn\n", `h.yml:3: pinned: action: want localize, replicate, aggregate, limit, none, not "burn"`},
		{"wishes for a ban", "banned:\n  - key: a\n    copies: 2\n", `h.yml:3: banned: unknown field "copies"`},
		{"unknown field", "pinned:\n  - kye: a\n", `h.yml:2: pinned: unknown field "kye", did you mean "key"?`},
		{"long key", "pinned:\n  - " + strings.Repeat("k", maxKeyBytes+1) + "\n", "h.yml:2: pinned: the key is longer than 1024 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("h.yml", []byte(c.in))
			if err == nil || err.Error() != c.want {
				t.Errorf("got %v; want %s", err, c.want)
			}
		})
	}
}

func TestManualKeysAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("banned:\n")
	for i := range maxManualKeys + 1 {
		fmt.Fprintf(&b, "  - k%d\n", i)
	}
	_, err := Parse("h.yml", []byte(b.String()))
	if want := "h.yml:502: banned: more than 500 pinned and banned keys"; err == nil || err.Error() != want {
		t.Errorf("got %v; want %s", err, want)
	}
}
