package topk

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func mustRules(t testing.TB, rules ...Rule) *RuleSet {
	t.Helper()
	s, err := CompileRules(rules)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheLongestMatchingRuleCounts(t *testing.T) {
	s := mustRules(t,
		Rule{Name: "all", Match: MatchGlob, Pattern: "*"},
		Rule{Name: "user", Match: MatchPrefix, Pattern: "user:"},
		Rule{Name: "user 1", Match: MatchPrefix, Pattern: "user:1"},
		Rule{Name: "exactly user:1", Match: MatchExact, Pattern: "user:1"},
		Rule{Name: "lock", Match: MatchSuffix, Pattern: ":lock"},
		Rule{Name: "cart", Match: MatchContains, Pattern: ":cart:"},
		Rule{Name: "session", Match: MatchGlob, Pattern: "session:[0-9a-f]*:v?"},
		Rule{Name: "odd", Match: MatchGlob, Pattern: `odd\*key`},
		Rule{Name: "empty", Match: MatchExact, Pattern: ""},
	)
	for key, want := range map[string]string{
		"user:2":          "user",
		"user:1":          "exactly user:1",
		"user:12":         "user 1",
		"user:2:lock":     "user", // both 5 bytes: prefix goes before suffix
		"x:lock":          "lock",
		"user:12:cart:3":  "user 1", // contains is 6 bytes too: prefix goes first
		"shop:cart:3":     "cart",
		"session:0f:v2":   "session", // 10 literal bytes
		"session:zz:v2":   "all",
		"session:0f:v22":  "all",
		"odd*key":         "odd",
		"oddxkey":         "all",
		"anything":        "all",
		"":                "empty",
		"user:\xff\x00":   "user",
		"session:1:vé":    "all", // ? is one byte
		"prefix:user:1":   "all",
		"lock":            "all",
		"user:9999:lockx": "user",
	} {
		r := s.Find([]byte(key))
		if r == nil || r.Name != want {
			t.Errorf("%q: rule %v; want %q", key, r, want)
		}
	}
	if r := (*RuleSet)(nil).Find([]byte("x")); r != nil {
		t.Errorf("a nil set found %v", r)
	}
}

var globCases = []struct {
	pattern, key string
	want         bool
}{
	{"*", "", true}, {"*", "abc", true}, {"?", "", false}, {"?", "a", true}, {"a*c", "abbc", true}, {"a*c", "abcb", false},
	{"*a*b*", "xxaxxbxx", true}, {"*a*b*", "xxbxxaxx", false}, {"**", "x", true}, {"a**", "a", true},
	{"[abc]", "b", true}, {"[abc]", "d", false}, {"[^abc]", "d", true}, {"[^abc]", "a", false}, {"[a-c]x", "bx", true},
	{"[c-a]x", "bx", true}, {`[\]]`, "]", true}, {`[a\-z]`, "-", true}, {`[a\-z]`, "m", false}, {"[a-]", "-", true},
	{`\?`, "?", true}, {`\?`, "a", false}, {`a\\b`, `a\b`, true}, {"[]", "a", false}, {"[^]", "a", true},
	{"ab*ab", "ab", false}, {"ab*ab", "abab", true}, {"*ab", "aab", true}, {"*aab", "aaab", true}, {"x*", "y", false},
}

func TestGlob(t *testing.T) {
	for _, c := range globCases {
		if reason := checkGlob(c.pattern); reason != "" {
			t.Errorf("%s refused: %s", c.pattern, reason)
			continue
		}
		if got := matchGlob([]byte(c.pattern), []byte(c.key)); got != c.want {
			t.Errorf("%s on %q: %v; want %v", c.pattern, c.key, got, c.want)
		}
	}
}

func TestGlobWorkIsBounded(t *testing.T) {
	pattern := []byte(strings.Repeat("*a", 127) + "b")
	key := []byte(strings.Repeat("a", MaxKeyBytes))
	done := make(chan bool, 1)
	go func() { done <- matchGlob(pattern, key) }()
	select {
	case got := <-done:
		if got {
			t.Error("matched")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("still matching after 10 s")
	}
}

var badRules = []struct {
	rule Rule
	want string
}{
	{Rule{Match: MatchPrefix}, "rule 2: empty pattern"},
	{Rule{Name: "n", Match: MatchGlob, Pattern: "a["}, "rule 2 (n): glob has an unclosed ["},
	{Rule{Match: MatchGlob, Pattern: `a\`}, "rule 2: glob ends with a backslash"},
	{Rule{Pattern: strings.Repeat("x", 257)}, "rule 2: pattern longer than 256 bytes"},
	{Rule{Pattern: "x", Share: 1.5}, "rule 2: share 1.5 is not between 0.001 and 1"},
	{Rule{Pattern: "x", Share: math.NaN()}, "rule 2: share NaN is not between 0.001 and 1"},
	{Rule{Pattern: "x", Share: -0.1}, "rule 2: share -0.1 is not between 0.001 and 1"},
	{Rule{Pattern: "x", MinRate: -1}, "rule 2: min_rate -1 is not between 0 and 1e9"},
	{Rule{Pattern: "x", MinRate: math.Inf(1)}, "rule 2: min_rate +Inf is not between 0 and 1e9"},
	{Rule{Pattern: "x", BytesShare: 2}, "rule 2: bytes share 2 is not between 0 and 1"},
	{Rule{Pattern: "x", TTL: -time.Second}, "rule 2: negative ttl"},
	{Rule{Pattern: "x", Copies: 5000}, "rule 2: copies 5000 is not between 0 and 1024"},
	{Rule{Pattern: "x", Action: "explode"}, `rule 2: unknown action "explode"`},
	{Rule{Pattern: "x", Match: 9}, "rule 2: unknown kind of match"},
	{Rule{Pattern: "x", Kind: 9}, "rule 2: unknown kind"},
	{Rule{Pattern: "x", Ignore: true, Share: 0.1}, "rule 2: an ignored key takes no thresholds and no action"},
	{Rule{Pattern: "first"}, "rule 2: same exact pattern as rule 1"},
}

func TestBadRulesAreRefusedWithIndexAndReason(t *testing.T) {
	for _, c := range badRules {
		_, err := CompileRules([]Rule{{Pattern: "first"}, c.rule})
		var re *RuleError
		if err == nil || err.Error() != c.want || !errors.As(err, &re) || re.Index != 1 {
			t.Errorf("%+v: %v; want %s", c.rule, err, c.want)
		}
	}
	if _, err := CompileRules(make([]Rule, MaxRules+1)); err == nil {
		t.Error("too many rules accepted")
	}
	for _, m := range []Match{MatchExact, MatchPrefix, MatchSuffix, MatchContains, MatchGlob} {
		if got, err := ParseMatch(m.String()); got != m || err != nil {
			t.Errorf("ParseMatch(%s) = %v, %v", m, got, err)
		}
	}
	for _, k := range []Kind{KindAny, KindRead, KindWrite} {
		if got, err := ParseKind(k.String()); got != k || err != nil {
			t.Errorf("ParseKind(%s) = %v, %v", k, got, err)
		}
	}
	if _, err := ParseMatch("regexp"); err == nil {
		t.Error("ParseMatch accepted regexp")
	}
	if _, err := ParseKind("both"); err == nil {
		t.Error("ParseKind accepted both")
	}
}

// judged feeds 60 s of 1,000 accesses/s in which key x:1 has the given share,
// a third of it writes, and returns its state.
func judged(t *testing.T, share float64, cfg Config) *KeyStat {
	t.Helper()
	cfg.Seed = 1
	rng := rand.New(rand.NewPCG(9, 61))
	d, c := New(cfg), NewCounter(cfg)
	for i := range int64(60_000) {
		a := Access{T: t0 + i*1_000_000, Key: fmt.Appendf(nil, "bg:%d", rng.IntN(50_000)), Bytes: 30}
		if rng.Float64() < share {
			a.Key = []byte("x:1")
			a.Write = rng.IntN(3) == 0
		}
		d.Add(&a)
		c.Add(&a)
	}
	d.Advance(t0 + 60*second)
	k := keyOf(t, d.Snapshot(), "x:1")
	if whole := keyOf(t, c.Snapshot(), "x:1"); whole.State != k.State || whole.Rule != k.Rule {
		t.Errorf("whole file: %s by %q; window: %s by %q", whole.State, whole.Rule, k.State, k.Rule)
	}
	return k
}

func TestRulesChangeTheJudgement(t *testing.T) {
	x := func(r Rule) Config {
		r.Name, r.Match, r.Pattern = "x", MatchPrefix, "x:"
		return Config{Rules: mustRules(t, r)}
	}
	for _, c := range []struct {
		name  string
		share float64
		cfg   Config
		want  State
	}{
		{"no rule", 0.05, Config{}, StateHot},
		{"other threshold for all", 0.05, Config{Threshold: 0.1}, StateNone},
		{"lower share", 0.01, x(Rule{Share: 0.005}), StateHot},
		{"higher share", 0.05, x(Rule{Share: 0.2}), StateNone},
		{"estimate alone reaches it", 0.0501, x(Rule{Share: 0.05}), StateProbable},
		{"rate reached", 0.05, x(Rule{MinRate: 40}), StateHot},
		{"rate missed", 0.05, x(Rule{MinRate: 100}), StateNone},
		{"writes too few", 0.05, x(Rule{Kind: KindWrite}), StateNone},
		{"writes enough", 0.09, x(Rule{Kind: KindWrite}), StateHot},
		{"reads enough", 0.05, x(Rule{Kind: KindRead}), StateHot},
		{"reads too few", 0.026, x(Rule{Kind: KindRead}), StateNone},
		{"write rate missed", 0.2, x(Rule{Kind: KindWrite, MinRate: 100}), StateNone},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := judged(t, c.share, c.cfg)
			if k.State != c.want {
				t.Errorf("state %s (share %.4f, low %.4f); want %s", k.State, k.Share, k.ShareLow, c.want)
			}
			if c.cfg.Rules != nil && (k.Rule != "x" || k.Group != "x") {
				t.Errorf("rule %q group %q; want x", k.Rule, k.Group)
			}
		})
	}
}

func TestIgnoredKeysAreNeverListedNorShown(t *testing.T) {
	cfg := Config{Seed: 1, Rules: mustRules(t, Rule{Match: MatchExact, Pattern: "health", Ignore: true})}
	d, c := New(cfg), NewCounter(cfg)
	for i := range int64(10_000) {
		key := []byte("health")
		if i%2 == 0 {
			key = []byte("work")
		}
		a := Access{T: t0 + i*1e6, Key: key, Read: true}
		d.Add(&a)
		c.Add(&a)
	}
	d.Advance(t0 + 20*second)
	for i, s := range []*Snapshot{d.Snapshot(), c.Snapshot()} {
		if len(s.Keys) != 1 || string(s.Keys[0].Key) != "work" || math.Abs(s.Keys[0].Share-0.5) > 0.01 {
			t.Errorf("view %d: %+v; want work alone, with half of all accesses", i, s.Keys)
		}
	}
	for _, e := range d.Events(nil) {
		if string(e.Key) != "work" {
			t.Errorf("event of %s", e.Key)
		}
	}
}

func TestGroupShares(t *testing.T) {
	rules := mustRules(t,
		Rule{Name: "sessions", Match: MatchPrefix, Pattern: "s:"},
		Rule{Name: "carts", Group: "shop", Match: MatchPrefix, Pattern: "c:"},
		Rule{Name: "items", Group: "shop", Match: MatchPrefix, Pattern: "i:"},
	)
	for _, keys := range []int{50, 500_000} { // all tracked; nearly none
		d, c := New(Config{Seed: 1, Rules: rules}), NewCounter(Config{Seed: 1, Rules: rules, MaxKeys: 5000})
		rng := rand.New(rand.NewPCG(uint64(keys), 62))
		for i := range int64(400_000) {
			kind := "x"
			switch u := rng.Float64(); {
			case u < 0.3:
				kind = "s"
			case u < 0.4:
				kind = "c"
			case u < 0.45:
				kind = "i"
			}
			a := Access{T: t0 + i*100_000, Key: fmt.Appendf(nil, "%s:%d", kind, rng.IntN(keys)), Read: true}
			d.Add(&a)
			c.Add(&a)
		}
		for i, s := range []*Snapshot{d.Snapshot(), c.Snapshot()} {
			if len(s.Groups) != 2 || s.Groups[0].Name != "sessions" || s.Groups[1].Name != "shop" {
				t.Fatalf("groups %+v", s.Groups)
			}
			for g, want := range []float64{0.3, 0.15} {
				if math.Abs(s.Groups[g].Share-want) > 0.02*want+0.003 {
					t.Errorf("view %d, %d keys: %s has %.4f; want %v", i, keys, s.Groups[g].Name, s.Groups[g].Share, want)
				}
			}
		}
	}
}

func TestGroupSharesFollowTheWindow(t *testing.T) {
	d := New(Config{Seed: 1, Rules: mustRules(t, Rule{Name: "a", Match: MatchPrefix, Pattern: "a"})})
	for i := range int64(2000) {
		key := []byte("a1")
		if i >= 1000 {
			key = []byte("b1")
		}
		d.Add(&Access{T: t0 + i*1e8, Key: key, Read: true})
	}
	if g := d.Snapshot().Groups[0]; g.Accesses != 0 {
		t.Errorf("%d accesses of the group 100 s after its last; want 0", g.Accesses)
	}
}

func TestReconfigureKeepsCounts(t *testing.T) {
	rules := mustRules(t, Rule{Name: "a", Match: MatchPrefix, Pattern: "a"})
	d := New(Config{Seed: 1, Rules: rules})
	for i := range int64(6000) {
		d.Add(&Access{T: t0 + i*1e6, Key: []byte("a1"), Read: true})
	}
	if s := d.Snapshot(); s.Hot != 1 {
		t.Fatalf("%d hot; want 1", s.Hot)
	}
	d.Reconfigure(Config{Rules: mustRules(t,
		Rule{Name: "other", Match: MatchPrefix, Pattern: "zz"},
		Rule{Name: "a", Match: MatchPrefix, Pattern: "a", Share: 0.5, Action: "localize"})})
	s := d.Snapshot()
	if k := &s.Keys[0]; k.Accesses != 6000 || k.Action != "localize" || k.State != StateHot {
		t.Errorf("after reload: %d accesses, action %q, %s", k.Accesses, k.Action, k.State)
	}
	if g := s.Groups[1]; g.Name != "a" || g.Accesses != 6000 {
		t.Errorf("group after reload: %+v", g)
	}
	d.Reconfigure(Config{Rules: mustRules(t, Rule{Match: MatchPrefix, Pattern: "a", Ignore: true})})
	if s := d.Snapshot(); s.Hot != 0 || len(s.Keys) != 0 {
		t.Errorf("%d keys, %d hot after the key was ignored; want none", len(s.Keys), s.Hot)
	}
	ev := d.Events(nil)
	if last := ev[len(ev)-1]; last.Kind != EventGone {
		t.Errorf("last event %s; want gone", last.Kind)
	}
}

func FuzzGlob(f *testing.F) {
	for _, c := range globCases {
		f.Add(c.pattern, c.key)
	}
	for _, c := range badRules {
		f.Add(c.rule.Pattern, "key")
	}
	f.Fuzz(func(t *testing.T, pattern, key string) {
		if len(pattern) > MaxPatternBytes || len(key) > MaxKeyBytes {
			return
		}
		s, err := CompileRules([]Rule{{Match: MatchGlob, Pattern: pattern}})
		if err != nil {
			return
		}
		s.Find([]byte(key))
		// A pattern without special bytes matches itself and nothing else.
		if !strings.ContainsAny(pattern, `*?[]\`) && (s.Find([]byte(key)) != nil) != (pattern == key) {
			t.Errorf("%q on %q", pattern, key)
		}
	})
}
