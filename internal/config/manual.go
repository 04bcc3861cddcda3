package config

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// ManualKey is one entry of the lists under `pinned:` and `banned:`: a key by
// itself, or fields. Zero numbers and times mean "not given".
type ManualKey struct {
	Line   int // where it stands, for messages
	Key    string
	Banned bool

	From, Until time.Time
	Action      string // wishes for a pinned key, as in Rule
	TTL         time.Duration
	Copies      int
}

// maxManualKeys bounds both lists together: half of what a published list can
// hold, so that pins never push out everything that is measured.
const maxManualKeys = 500

// maxKeyBytes is how much of a key the daemon keeps: longer ones cannot be
// told apart and are never listed.
const maxKeyBytes = 1024

// Manual returns the entries of `pinned:` and `banned:` in the order of the
// file; no key is among them twice.
func (f *File) Manual() []ManualKey {
	if f == nil {
		return nil
	}
	return f.manual
}

// decodeManual reads the list called name.
func (f *File) decodeManual(name string, n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return f.errorAt(n, "%s: want a list of keys", name)
	}
	for _, item := range n.Content {
		k, err := f.decodeManualKey(name, item)
		if err != nil {
			return err
		}
		for i := range f.manual {
			if f.manual[i].Key == k.Key {
				return f.errorAt(item, "%s: this key is given already in line %d", name, f.manual[i].Line)
			}
		}
		if len(f.manual) == maxManualKeys {
			return f.errorAt(item, "%s: more than %d pinned and banned keys", name, maxManualKeys)
		}
		f.manual = append(f.manual, k)
	}
	return nil
}

func (f *File) decodeManualKey(name string, n *yaml.Node) (ManualKey, error) {
	k := ManualKey{Line: n.Line, Banned: name == "banned"}
	has := false
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag != "!!null":
		k.Key, has = n.Value, true
	case n.Kind == yaml.MappingNode:
		if err := f.unique(n); err != nil {
			return k, err
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			field, val := n.Content[i], n.Content[i+1]
			if val.Kind != yaml.ScalarNode {
				return k, f.errorAt(val, "%s: %s: want one value", name, field.Value)
			}
			isKey := field.Value == "key" || field.Value == "key_base64"
			if isKey && has {
				return k, f.errorAt(field, "%s: %s: the key is already given", name, field.Value)
			}
			has = has || isKey
			if err := k.set(field.Value, val.Value); err != nil {
				return k, f.errorAt(field, "%s: %v", name, err)
			}
		}
	default:
		return k, f.errorAt(n, "%s: want a key, or fields such as key and until", name)
	}
	switch {
	case !has:
		return k, f.errorAt(n, "%s: key or key_base64 is needed", name)
	case len(k.Key) > maxKeyBytes:
		return k, f.errorAt(n, "%s: the key is longer than %d bytes", name, maxKeyBytes)
	case !k.Until.IsZero() && !k.Until.After(k.From):
		return k, f.errorAt(n, "%s: until is not after from", name)
	}
	return k, nil
}

func (k *ManualKey) set(field, text string) (err error) {
	fields := names(ManualFields)
	if k.Banned {
		fields = fields[:bannedFieldCount]
	}
	if !slices.Contains(fields, field) {
		msg := fmt.Sprintf("unknown field %q", field)
		if near := nearest(field, fields); near != "" {
			msg += fmt.Sprintf(", did you mean %q?", near)
		}
		return fmt.Errorf("%s", msg)
	}
	switch field {
	case "key":
		k.Key = text
	case "key_base64":
		var raw []byte
		if raw, err = base64.StdEncoding.DecodeString(text); err != nil {
			err = fmt.Errorf("want base64, not %q", text)
		}
		k.Key = string(raw)
	case "from":
		k.From, err = moment(text)
	case "until":
		k.Until, err = moment(text)
	case "action":
		k.Action, err = oneOf(text, actionNames...)
	case "ttl":
		k.TTL, err = positive(text)
	case "copies":
		if k.Copies, err = strconv.Atoi(text); err != nil || k.Copies < 2 {
			err = fmt.Errorf("want a number of at least 2, not %q", text)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

func moment(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		err = fmt.Errorf("want a time such as 2026-11-27T08:00:00+01:00, not %q", text)
	}
	return t, err
}

func positive(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("want a duration above 0 such as 5s, not %q", text)
	}
	return d, nil
}
