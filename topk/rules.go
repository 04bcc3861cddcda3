package topk

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Match says how the pattern of a Rule is compared with a key.
type Match uint8

// The kinds of match.
const (
	MatchExact Match = iota
	MatchPrefix
	MatchSuffix
	MatchContains
	MatchGlob // * ? [abc] [a-z] [^a] and \ as in the KEYS command
)

var matchNames = [...]string{"exact", "prefix", "suffix", "contains", "glob"}

// String returns the name used in configuration.
func (m Match) String() string {
	if int(m) < len(matchNames) {
		return matchNames[m]
	}
	return "unknown"
}

// ParseMatch is the inverse of String.
func ParseMatch(s string) (Match, error) {
	if i := slices.Index(matchNames[:], s); i >= 0 {
		return Match(i), nil
	}
	return 0, fmt.Errorf("match %q: want exact, prefix, suffix, contains or glob", s)
}

// Kind restricts a Rule to one side of the traffic.
type Kind uint8

// The kinds.
const (
	KindAny Kind = iota
	KindRead
	KindWrite
)

var kindNames = [...]string{"any", "read", "write"}

// String returns the name used in configuration.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// ParseKind is the inverse of String; "" is any.
func ParseKind(s string) (Kind, error) {
	if s == "" {
		return KindAny, nil
	}
	if i := slices.Index(kindNames[:], s); i >= 0 {
		return Kind(i), nil
	}
	return 0, fmt.Errorf("kind %q: want any, read or write", s)
}

// Actions a rule may ask for; "" leaves the choice to the advisor.
var actionNames = []string{"", "localize", "replicate", "aggregate", "limit", "none"}

// Rule overrides how the keys it matches are judged. Of several matching rules
// the one with the longest pattern counts (for globs: most literal bytes).
type Rule struct {
	Name    string
	Group   string // keys of all rules of a group share one group share; "" = Name
	Match   Match
	Pattern string

	Share      float64 // threshold for the share of accesses; 0 = Config.Threshold
	MinRate    float64 // accesses/s a key must have as well; 0 = none
	BytesShare float64 // share of request and reply bytes from which a key is hot too; 0 = off
	Kind       Kind    // only reads or writes of the key count towards Share and MinRate
	Ignore     bool    // never listed and never shown; the accesses still count for the port

	Action string        // advice handed on with the key
	TTL    time.Duration // likewise
	Copies int           // likewise
}

// Bounds of a rule set: a rule index fits a byte, and a pattern has to be
// comparable with a hostile key in bounded time.
const (
	MaxRules        = 250
	MaxPatternBytes = 256
	maxCopies       = 1024
)

// Values of meta.rule.
const (
	ruleUnknown = 0
	ruleNone    = 1
	ruleFirst   = 2
)

// RuleError says which rule of a list is bad and why. The configuration adds
// the line.
type RuleError struct {
	Index  int // position in the slice given to CompileRules
	Name   string
	Reason string
}

func (e *RuleError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("rule %d: %s", e.Index+1, e.Reason)
	}
	return fmt.Sprintf("rule %d (%s): %s", e.Index+1, e.Name, e.Reason)
}

// RuleSet is a compiled list of rules. It is immutable and may be shared.
type RuleSet struct {
	rules  []Rule // as given
	order  []compiledRule
	groups []string
	group  []int16 // by rule index, -1 = none
	share  float64 // least Share of a rule, 1 if none
	bytes  bool    // a rule has a BytesShare
}

type compiledRule struct {
	index   int
	match   Match
	pattern []byte
	literal int
}

// CompileRules checks and orders rules. The error is a *RuleError.
func CompileRules(rules []Rule) (*RuleSet, error) {
	if len(rules) > MaxRules {
		return nil, &RuleError{Index: MaxRules, Reason: fmt.Sprintf("more than %d rules", MaxRules)}
	}
	s := &RuleSet{rules: slices.Clone(rules), share: 1}
	for i := range rules {
		r := &rules[i]
		if reason := r.check(); reason != "" {
			return nil, &RuleError{Index: i, Name: r.Name, Reason: reason}
		}
		for j := range rules[:i] {
			if rules[j].Match == r.Match && rules[j].Pattern == r.Pattern {
				return nil, &RuleError{Index: i, Name: r.Name, Reason: fmt.Sprintf("same %s pattern as rule %d", r.Match, j+1)}
			}
		}
		s.order = append(s.order, compiledRule{index: i, match: r.Match, pattern: []byte(r.Pattern), literal: literalBytes(r)})
		s.group = append(s.group, s.groupOf(r))
		if r.Share > 0 && !r.Ignore {
			s.share = min(s.share, r.Share)
		}
		s.bytes = s.bytes || r.BytesShare > 0 && !r.Ignore
	}
	// Longest first; for equal lengths the stricter kind of match, then the order given.
	slices.SortStableFunc(s.order, func(a, b compiledRule) int {
		return cmp.Or(cmp.Compare(b.literal, a.literal), cmp.Compare(a.match, b.match))
	})
	return s, nil
}

func (s *RuleSet) groupOf(r *Rule) int16 {
	name := cmp.Or(r.Group, r.Name)
	if name == "" {
		return -1
	}
	i := slices.Index(s.groups, name)
	if i < 0 {
		i = len(s.groups)
		s.groups = append(s.groups, name)
	}
	return int16(i)
}

func (r *Rule) check() string {
	switch {
	case int(r.Match) >= len(matchNames):
		return "unknown kind of match"
	case int(r.Kind) >= len(kindNames):
		return "unknown kind"
	case r.Pattern == "" && r.Match != MatchExact:
		return "empty pattern"
	case len(r.Pattern) > MaxPatternBytes:
		return fmt.Sprintf("pattern longer than %d bytes", MaxPatternBytes)
	case r.Share != 0 && !(r.Share >= MinThreshold && r.Share <= 1):
		return fmt.Sprintf("share %v is not between %v and 1", r.Share, MinThreshold)
	case !(r.MinRate >= 0 && r.MinRate <= 1e9):
		return fmt.Sprintf("min_rate %v is not between 0 and 1e9", r.MinRate)
	case !(r.BytesShare >= 0 && r.BytesShare <= 1):
		return fmt.Sprintf("bytes share %v is not between 0 and 1", r.BytesShare)
	case r.TTL < 0:
		return "negative ttl"
	case r.Copies < 0 || r.Copies > maxCopies:
		return fmt.Sprintf("copies %d is not between 0 and %d", r.Copies, maxCopies)
	case !slices.Contains(actionNames, r.Action):
		return fmt.Sprintf("unknown action %q", r.Action)
	case r.Ignore && (r.Share != 0 || r.MinRate != 0 || r.BytesShare != 0 || r.Action != ""):
		return "an ignored key takes no thresholds and no action"
	case r.Match == MatchGlob:
		return checkGlob(r.Pattern)
	}
	return ""
}

// Len returns the number of rules; a nil set has none.
func (s *RuleSet) Len() int {
	if s == nil {
		return 0
	}
	return len(s.rules)
}

// Find returns the rule that counts for the key, nil if none does.
func (s *RuleSet) Find(key []byte) *Rule {
	if i := s.find(key); i >= 0 {
		return &s.rules[i]
	}
	return nil
}

func (s *RuleSet) find(key []byte) int {
	if s == nil {
		return -1
	}
	for i := range s.order {
		if r := &s.order[i]; r.matches(key) {
			return r.index
		}
	}
	return -1
}

func (r *compiledRule) matches(key []byte) bool {
	switch r.match {
	case MatchExact:
		return bytes.Equal(key, r.pattern)
	case MatchPrefix:
		return bytes.HasPrefix(key, r.pattern)
	case MatchSuffix:
		return bytes.HasSuffix(key, r.pattern)
	case MatchContains:
		return bytes.Contains(key, r.pattern)
	default:
		return matchGlob(r.pattern, key)
	}
}
