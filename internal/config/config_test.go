package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseFlattensTheFile(t *testing.T) {
	f, err := Parse("h.yml", []byte(`
port: [6379, 7000-7005]
web:
  listen-address: "127.0.0.1:1"
threshold: 0.05
node:
rules:
  - prefix: "user:"
    name: users
    share: 0.1
    kind: write
    ttl: 3s
    group: g
    copies: 4
  - glob: "tmp:*"
    ignore: true
`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Value{
		"port":               {"6379,7000-7005", 2},
		"web.listen-address": {"127.0.0.1:1", 4},
		"threshold":          {"0.05", 5},
	}
	if d := cmp.Diff(f.values, want); d != "" {
		t.Error(d)
	}
	rules := []Rule{
		{Line: 8, Name: "users", Match: "prefix", Pattern: "user:", Share: 0.1, Kind: "write", TTL: 3 * time.Second, Group: "g", Copies: 4},
		{Line: 15, Match: "glob", Pattern: "tmp:*", Ignore: true},
	}
	if d := cmp.Diff(f.Rules(), rules); d != "" {
		t.Error(d)
	}
}

func TestMistakesNameTheLine(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"not a mapping", "- a\n", "h.yml:1: want key: value pairs"},
		{"not yaml", "a: [\n", "h.yml:1: did not find expected node content"},
		{"given twice", "a.b: 1\na:\n  b: 2\n", "h.yml:3: a.b is given twice"},
		{"nested list", "port:\n  - [1]\n", "h.yml:2: port: want a list of plain values"},
		{"rules is no list", "rules: 3\n", "h.yml:1: rules: want a list"},
		{"rule without match", "rules:\n  - share: 0.1\n", "h.yml:2: rules: one of exact, prefix, suffix, contains, glob is needed"},
		{"two matches", "rules:\n  - prefix: a\n    glob: b\n", "h.yml:3: rules: glob: prefix is already given"},
		{"bad share", "rules:\n  - prefix: a\n    share: 2\n", `h.yml:3: rules: share: want a ratio above 0 and at most 1, not "2"`},
		{"share is not a number", "rules:\n  - prefix: a\n    share: NaN\n", `h.yml:3: rules: share: want a ratio above 0 and at most 1, not "NaN"`},
		{"bad kind", "rules:\n  - prefix: a\n    kind: x\n", `h.yml:3: rules: kind: want read, write, any, not "x"`},
		{"negative rate", "rules:\n  - prefix: a\n    min_rate: -1\n", `h.yml:3: rules: min_rate: want accesses a second, not "-1"`},
		{"negative ttl", "rules:\n  - prefix: a\n    ttl: -1s\n", `h.yml:3: rules: ttl: want a duration above 0 such as 5s, not "-1s"`},
		{"one copy", "rules:\n  - prefix: a\n    copies: 1\n", `h.yml:3: rules: copies: want a number of at least 2, not "1"`},
		{"unknown field", "rules:\n  - prefxi: a\n", `h.yml:2: rules: unknown field "prefxi", did you mean "prefix"?`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("h.yml", []byte(c.in))
			if err == nil || err.Error() != c.want {
				t.Errorf("got %v; want %s", err, c.want)
			}
		})
	}
}

func TestCheckKeysSuggestsTheNearName(t *testing.T) {
	f, err := Parse("h.yml", []byte("treshold: 1\nzzzzzzzzz: 2\nnode: x\n"))
	if err != nil {
		t.Fatal(err)
	}
	err = f.CheckKeys([]string{"threshold", "node"})
	want := "h.yml:1: unknown key \"treshold\", did you mean \"threshold\"?\nh.yml:2: unknown key \"zzzzzzzzz\""
	if err == nil || err.Error() != want {
		t.Errorf("got %v; want %s", err, want)
	}
}

func TestLoadRefusesEndlessFiles(t *testing.T) {
	_, err := Load("/dev/zero")
	if err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("got %v; want a size error", err)
	}
}
