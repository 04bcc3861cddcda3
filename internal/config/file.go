package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFileBytes bounds a configuration file: a real one has a few kilobytes,
// and a path that names a device must not fill the memory.
const maxFileBytes = 4 << 20

// File is a parsed configuration file. The zero value is an empty one.
type File struct {
	path     string
	values   map[string]Value // by dotted path
	order    []string
	rules    []Rule
	manual   []ManualKey
	rewrites []Rewrite
}

// Value is one scalar, or one list of scalars joined by commas, with its line.
type Value struct {
	Text string
	Line int
}

// Error is a mistake in a configuration file.
type Error struct {
	Path string
	Line int // 0 when the file as a whole is meant
	Msg  string
}

// Error returns "path:line: message".
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.Path, e.Msg)
	}
	return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Msg)
}

// Load reads and parses the file at path. Errors are *Error or come from the
// file system.
func Load(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buf, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(buf) > maxFileBytes {
		return nil, &Error{Path: path, Msg: fmt.Sprintf("larger than %d bytes", maxFileBytes)}
	}
	return Parse(path, buf)
}

// Parse parses data; path only names it in errors.
func Parse(path string, data []byte) (*File, error) {
	file := &File{path: path, values: map[string]Value{}}
	var doc, more yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, file.syntaxError(err)
	}
	if err := dec.Decode(&more); err == nil {
		return nil, file.errorAt(&more, "a second document: want one")
	} else if !errors.Is(err, io.EOF) {
		return nil, file.syntaxError(err)
	}
	if doc.Kind == 0 || len(doc.Content) == 0 {
		return file, nil
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return file, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, file.errorAt(root, "want key: value pairs")
	}
	if err := file.walk("", root); err != nil {
		return nil, err
	}
	return file, nil
}

func (f *File) errorAt(n *yaml.Node, format string, args ...any) error {
	return &Error{Path: f.path, Line: n.Line, Msg: fmt.Sprintf(format, args...)}
}

// syntaxError turns what the YAML parser says into an Error.
func (f *File) syntaxError(err error) error {
	e := &Error{Path: f.path, Msg: strings.TrimPrefix(err.Error(), "yaml: ")}
	if n, _ := fmt.Sscanf(e.Msg, "line %d:", &e.Line); n == 1 {
		_, e.Msg, _ = strings.Cut(e.Msg, ": ")
	}
	return e
}

// unique refuses a mapping in which a key stands twice.
func (f *File) unique(m *yaml.Node) error {
	seen := make(map[string]bool, len(m.Content)/2)
	for i := 0; i < len(m.Content); i += 2 {
		if key := m.Content[i]; seen[key.Value] {
			return f.errorAt(key, "%s is given twice", key.Value)
		} else {
			seen[key.Value] = true
		}
	}
	return nil
}

// walk flattens a mapping into dotted paths.
func (f *File) walk(prefix string, m *yaml.Node) error {
	if err := f.unique(m); err != nil {
		return err
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		key, val := m.Content[i], m.Content[i+1]
		path := key.Value
		if prefix != "" {
			path = prefix + "." + key.Value
		}
		var err error
		switch path {
		case "rules":
			err = f.decodeRules(val)
		case "pinned", "banned":
			err = f.decodeManual(path, val)
		case "privacy.rewrite":
			err = f.decodeRewrites(val)
		default:
			err = f.add(path, key, val)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *File) add(path string, key, val *yaml.Node) error {
	if _, ok := f.values[path]; ok {
		return f.errorAt(key, "%s is given twice", path)
	}
	switch val.Kind {
	case yaml.MappingNode:
		return f.walk(path, val)
	case yaml.ScalarNode:
		if val.Tag != "!!null" {
			f.set(path, val.Value, key.Line)
		}
		return nil
	case yaml.SequenceNode:
		parts := make([]string, 0, len(val.Content))
		for _, c := range val.Content {
			if c.Kind != yaml.ScalarNode {
				return f.errorAt(c, "%s: want a list of plain values", path)
			}
			parts = append(parts, c.Value)
		}
		f.set(path, strings.Join(parts, ","), key.Line)
		return nil
	}
	return f.errorAt(val, "%s: aliases are not supported", path)
}

func (f *File) set(path, text string, line int) {
	f.values[path] = Value{Text: text, Line: line}
	f.order = append(f.order, path)
}

// Lookup returns the value at a dotted path.
func (f *File) Lookup(path string) (Value, bool) {
	if f == nil {
		return Value{}, false
	}
	v, ok := f.values[path]
	return v, ok
}

// Path returns the name the file was read from.
func (f *File) Path() string { return f.path }

// Rules returns the rules in the order of the file.
func (f *File) Rules() []Rule {
	if f == nil {
		return nil
	}
	return f.rules
}

// CheckKeys refuses keys that are not in known, which holds dotted paths. All
// mistakes are reported, joined, in the order of the file.
func (f *File) CheckKeys(known []string) error {
	set := make(map[string]bool, len(known))
	for _, k := range known {
		set[k] = true
	}
	var errs []error
	for _, path := range f.order {
		if set[path] {
			continue
		}
		msg := fmt.Sprintf("unknown key %q", path)
		if near := nearest(path, known); near != "" {
			msg += fmt.Sprintf(", did you mean %q?", near)
		}
		errs = append(errs, &Error{Path: f.path, Line: f.values[path].Line, Msg: msg})
	}
	return errors.Join(errs...)
}

// CheckValues asks check about each value and returns all that it finds wrong,
// with their lines, joined, in the order of the file.
func (f *File) CheckValues(check func(path, text string) error) error {
	var errs []error
	for _, path := range f.order {
		if err := check(path, f.values[path].Text); err != nil {
			errs = append(errs, &Error{Path: f.path, Line: f.values[path].Line, Msg: path + ": " + err.Error()})
		}
	}
	return errors.Join(errs...)
}
