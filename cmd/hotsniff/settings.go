package main

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/hotsniff/hotsniff/internal/config"
)

// resolver gives flags their values from the configuration file. The
// environment is looked at before by kong and beats it.
type resolver struct{ a *app }

// Validate implements kong.Resolver.
func (resolver) Validate(*kong.Application) error { return nil }

// Resolve implements kong.Resolver.
func (r resolver) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if fromEnvironment(flag) {
		return nil, nil
	}
	v, ok := r.a.file.Lookup(flag.Name)
	if !ok {
		return nil, nil
	}
	return v.Text, nil
}

// loadConfig reads the file named by --config.file or its variable. It runs
// before the command line is parsed, because parsing asks the file for values.
func (a *app) loadConfig() error {
	path := os.Getenv("HOTSNIFF_CONFIG_FILE")
	for i, arg := range a.args {
		if value, ok := strings.CutPrefix(arg, "--config.file="); ok {
			path = value
		} else if arg == "--config.file" && i+1 < len(a.args) {
			path = a.args[i+1]
		}
	}
	if path == "" {
		return nil
	}
	file, err := a.readConfig(path)
	a.file = file
	return err
}

// readConfig reads a file and refuses keys that no flag has, and values that
// are not of the flag's type.
func (a *app) readConfig(path string) (*config.File, error) {
	file, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	if err := file.CheckKeys(slices.Sorted(maps.Keys(a.flags))); err != nil {
		return nil, err
	}
	return file, file.CheckValues(func(key, text string) error { return checkType(a.flags[key][0], text) })
}

// flagsByName lists the flags of all commands, without those that make no
// sense in a file.
func flagsByName(n *kong.Node) map[string][]*kong.Flag {
	all := map[string][]*kong.Flag{}
	for _, f := range n.Flags {
		if f.Name != "help" && f.Name != "config.file" {
			all[f.Name] = append(all[f.Name], f)
		}
	}
	for _, child := range n.Children {
		for name, flags := range flagsByName(child) {
			all[name] = append(all[name], flags...)
		}
	}
	return all
}

// checkConfigCmd is `hotsniff check-config`.
type checkConfigCmd struct {
	File string `arg:"" help:"The file to check." type:"path"`
}

// Run implements the command: it parses the file, and then the flags of the
// daemon with the file's values, as a start would do. Flags and environment of
// the caller say nothing about the file and are not looked at.
func (c *checkConfigCmd) Run(a *app) error {
	file, err := a.readConfig(c.File)
	if err != nil {
		return err
	}
	a.file = file
	var daemon struct {
		Run runCmd `cmd:"" default:"1"`
	}
	parser, err := kong.New(&daemon, kong.Resolvers(resolver{a}))
	if err != nil {
		return err
	}
	if a.k, err = parser.Parse(nil); err != nil {
		return errors.New(c.File + ": " + err.Error())
	}
	if err := a.checkRanges(); err != nil {
		return err
	}
	if err := daemon.Run.check(a); err != nil {
		return err
	}
	_, err = a.out.Write([]byte(c.File + ": ok\n"))
	return err
}

// check refuses what a start would refuse, without starting anything.
func (c *runCmd) check(a *app) error {
	if _, err := c.engineConfig(a); err != nil {
		return err
	}
	if _, err := c.masker(a); err != nil {
		return err
	}
	if _, err := c.samplingFlags.config(a); err != nil {
		return err
	}
	if err := c.webFlags.validate(a); err != nil {
		return err
	}
	p, err := c.publishFlags.publisher(a, c.node(), slog.New(slog.DiscardHandler))
	if err != nil || p == nil {
		return err
	}
	return p.Client().Close()
}
