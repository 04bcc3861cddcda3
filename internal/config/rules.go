package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Rule is one entry of the list under `rules:`. Exactly one of the match
// fields (Exact, Prefix, Suffix, Contains, Glob) is set. Zero numbers mean
// "not given".
type Rule struct {
	Line    int // where it stands, for messages
	Name    string
	Group   string // keys of all rules of a group share one group share; "": Name
	Match   string // "exact", "prefix", "suffix", "contains" or "glob"
	Pattern string

	Share      float64 // threshold of the share, 0..1
	MinRate    float64 // accesses a second
	BytesShare float64 // threshold of the share of bytes, 0..1
	Kind       string  // "", "read", "write" or "any"
	Action     string  // "", "localize", "replicate", "aggregate", "limit" or "none"
	TTL        time.Duration
	Copies     int  // for the action replicate
	Ignore     bool // never listed
}

var matchKinds = []string{"exact", "prefix", "suffix", "contains", "glob"}

var actionNames = []string{"localize", "replicate", "aggregate", "limit", "none"}

// maxRules bounds the rules: each costs a comparison when a key is first seen.
const maxRules = 1000

func (f *File) decodeRules(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return f.errorAt(n, "rules: want a list")
	}
	if len(n.Content) > maxRules {
		return f.errorAt(n, "rules: more than %d", maxRules)
	}
	for _, item := range n.Content {
		r, err := f.decodeRule(item)
		if err != nil {
			return err
		}
		f.rules = append(f.rules, r)
	}
	return nil
}

func (f *File) decodeRule(n *yaml.Node) (Rule, error) {
	r := Rule{Line: n.Line}
	if n.Kind != yaml.MappingNode {
		return r, f.errorAt(n, "rules: want fields such as prefix and share")
	}
	if err := f.unique(n); err != nil {
		return r, err
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		if val.Kind != yaml.ScalarNode {
			return r, f.errorAt(val, "rules: %s: want one value", key.Value)
		}
		if err := r.set(key.Value, val.Value); err != nil {
			return r, f.errorAt(key, "rules: %v", err)
		}
	}
	if r.Match == "" {
		return r, f.errorAt(n, "rules: one of %s is needed", strings.Join(matchKinds, ", "))
	}
	return r, nil
}

func (r *Rule) set(field, text string) (err error) {
	switch field {
	case "exact", "prefix", "suffix", "contains", "glob":
		if r.Match != "" {
			return fmt.Errorf("%s: %s is already given", field, r.Match)
		}
		r.Match, r.Pattern = field, text
	case "name":
		r.Name = text
	case "group":
		r.Group = text
	case "copies":
		r.Copies, err = strconv.Atoi(text)
		if err != nil || r.Copies < 2 {
			err = fmt.Errorf("want a number of at least 2, not %q", text)
		}
	case "share":
		r.Share, err = ratio(text)
	case "bytes_share":
		r.BytesShare, err = ratio(text)
	case "min_rate":
		r.MinRate, err = strconv.ParseFloat(text, 64)
		if err != nil || !(r.MinRate >= 0) {
			err = fmt.Errorf("want accesses a second, not %q", text)
		}
	case "kind":
		r.Kind, err = oneOf(text, "read", "write", "any")
	case "action":
		r.Action, err = oneOf(text, actionNames...)
	case "ttl":
		r.TTL, err = positive(text)
	case "ignore":
		r.Ignore, err = strconv.ParseBool(text)
	default:
		msg := fmt.Sprintf("unknown field %q", field)
		if near := nearest(field, names(RuleFields)); near != "" {
			msg += fmt.Sprintf(", did you mean %q?", near)
		}
		return fmt.Errorf("%s", msg)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

func ratio(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0 && v <= 1) {
		return 0, fmt.Errorf("want a ratio above 0 and at most 1, not %q", text)
	}
	return v, nil
}

func oneOf(text string, allowed ...string) (string, error) {
	for _, a := range allowed {
		if text == a {
			return text, nil
		}
	}
	return "", fmt.Errorf("want %s, not %q", strings.Join(allowed, ", "), text)
}
