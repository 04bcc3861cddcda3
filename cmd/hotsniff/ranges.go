package main

import (
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/hotsniff/hotsniff/internal/config"
)

// Flags say their range in tags: min and max, or above for a bound that is
// itself outside. CONFIGURATION.md and every message is made from them.

// typeName says what a flag wants, "" for any text.
func typeName(f *kong.Flag) string {
	switch {
	case f.Enum != "":
		return strings.Join(f.EnumSlice(), ", ")
	case f.Target.Type() == reflect.TypeFor[time.Duration]():
		return "a duration such as 5s"
	}
	switch f.Target.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint16, reflect.Uint64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	}
	return ""
}

// checkType refuses text that is no value of a flag.
func checkType(f *kong.Flag, text string) error {
	scan := kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: text})
	err := f.Parse(scan, reflect.New(f.Target.Type()).Elem())
	if err == nil && (f.Enum == "" || f.EnumMap()[text]) {
		return nil
	}
	if want := typeName(f); want != "" {
		return fmt.Errorf("want %s, not %q", want, text)
	}
	return err
}

// rangeText describes the range of a flag, "" when it has none.
func rangeText(f *kong.Flag) string {
	low, above, high := f.Tag.Get("min"), f.Tag.Get("above"), f.Tag.Get("max")
	switch {
	case above != "" && high != "":
		return "above " + above + " and at most " + high
	case above != "":
		return "above " + above
	case low != "" && high != "":
		return low + " to " + high
	case low != "":
		return "at least " + low
	case high != "":
		return "at most " + high
	}
	return ""
}

// inRange reports whether the value of a flag is within its range.
func inRange(f *kong.Flag) bool {
	var v float64
	switch f.Target.Kind() {
	case reflect.Int, reflect.Int64:
		v = float64(f.Target.Int())
	case reflect.Float64:
		v = f.Target.Float()
	default:
		return true
	}
	bound := func(tag string, ok func(b float64) bool) bool {
		text := f.Tag.Get(tag)
		return text == "" || ok(boundOf(f, text))
	}
	// Written so that NaN is out of every range.
	return bound("min", func(b float64) bool { return v >= b }) && bound("above", func(b float64) bool { return v > b }) &&
		bound("max", func(b float64) bool { return v <= b })
}

// boundOf reads a bound, which is written as values of the flag are.
func boundOf(f *kong.Flag, text string) float64 {
	if f.Target.Type() == reflect.TypeFor[time.Duration]() {
		d, err := time.ParseDuration(text)
		if err != nil {
			panic(err) // a mistake in the struct tags
		}
		return float64(d)
	}
	b, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return b
}

// checkRanges refuses the first flag of the command that is out of its range.
func (a *app) checkRanges() error {
	for _, f := range a.k.Flags() {
		if !inRange(f) {
			return a.blame(f.Name, fmt.Errorf("want %s, not %v", rangeText(f), f.Target.Interface()))
		}
	}
	return nil
}

// blame says whose mistake the value of a flag is: of the file, with the line,
// or of the command line or the environment, which is wrong usage.
func (a *app) blame(name string, err error) error {
	if bad := a.inFile(name, err); bad != nil {
		return bad
	}
	return usageError{fmt.Errorf("--%s: %w", name, err)}
}

// inFile returns err with the line of the file that gave a flag its value, nil
// when something else did.
func (a *app) inFile(name string, err error) error {
	v, ok := a.file.Lookup(name)
	for _, p := range a.k.Path {
		ok = ok && (p.Flag == nil || p.Flag.Name != name || p.Resolved)
	}
	for _, f := range a.k.Flags() {
		ok = ok && (f.Name != name || !fromEnvironment(f))
	}
	if !ok {
		return nil
	}
	return &config.Error{Path: a.file.Path(), Line: v.Line, Msg: name + ": " + err.Error()}
}

func fromEnvironment(f *kong.Flag) bool {
	for _, name := range f.Envs {
		if _, ok := os.LookupEnv(name); ok {
			return true
		}
	}
	return false
}
