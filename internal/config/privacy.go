package config

import (
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// Rewrite is one entry of the list under `privacy.rewrite:`: what matches the
// regular expression Match becomes To.
type Rewrite struct {
	Line      int // where it stands, for messages
	Match, To string
}

// maxRewrites bounds the rewrites: each is tried on every name that is shown
// for the first time.
const maxRewrites = 100

// Rewrites returns the entries of `privacy.rewrite:` in the order of the file.
func (f *File) Rewrites() []Rewrite {
	if f == nil {
		return nil
	}
	return f.rewrites
}

func (f *File) decodeRewrites(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return f.errorAt(n, "privacy.rewrite: want a list of match and to")
	}
	if len(n.Content) > maxRewrites {
		return f.errorAt(n, "privacy.rewrite: more than %d", maxRewrites)
	}
	for _, item := range n.Content {
		r, err := f.decodeRewrite(item)
		if err != nil {
			return err
		}
		f.rewrites = append(f.rewrites, r)
	}
	return nil
}

func (f *File) decodeRewrite(n *yaml.Node) (Rewrite, error) {
	r := Rewrite{Line: n.Line}
	if n.Kind != yaml.MappingNode {
		return r, f.errorAt(n, "privacy.rewrite: want match and to")
	}
	if err := f.unique(n); err != nil {
		return r, err
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		field, val := n.Content[i], n.Content[i+1]
		if val.Kind != yaml.ScalarNode {
			return r, f.errorAt(val, "privacy.rewrite: %s: want one value", field.Value)
		}
		switch field.Value {
		case "match":
			if _, err := regexp.Compile(val.Value); err != nil {
				return r, f.errorAt(val, "privacy.rewrite: match: %v", err)
			}
			r.Match = val.Value
		case "to":
			r.To = val.Value
		default:
			msg := fmt.Sprintf("privacy.rewrite: unknown field %q", field.Value)
			if near := nearest(field.Value, names(RewriteFields)); near != "" {
				msg += fmt.Sprintf(", did you mean %q?", near)
			}
			return r, f.errorAt(field, "%s", msg)
		}
	}
	if r.Match == "" {
		return r, f.errorAt(n, "privacy.rewrite: match is needed")
	}
	return r, nil
}
