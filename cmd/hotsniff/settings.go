package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/prometheus/exporter-toolkit/web"

	"github.com/hotsniff/hotsniff/internal/config"
)

// resolver gives flags their values from the configuration file. The
// environment is looked at before by kong and beats it.
type resolver struct{ a *app }

// Validate implements kong.Resolver.
func (resolver) Validate(*kong.Application) error { return nil }

// Resolve implements kong.Resolver.
func (r resolver) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, name := range flag.Envs {
		if _, ok := os.LookupEnv(name); ok {
			return nil, nil
		}
	}
	v, ok := r.a.file.Lookup(flag.Name)
	if !ok {
		return nil, nil
	}
	return v.Text, nil
}

// loadConfig reads the file named by --config.file or its variable. It runs
// before the command line is parsed, because parsing asks the file for values.
func (a *app) loadConfig(args []string) error {
	path := os.Getenv("HOTSNIFF_CONFIG_FILE")
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--config.file="); ok {
			path = value
		} else if arg == "--config.file" && i+1 < len(args) {
			path = args[i+1]
		}
	}
	if path == "" {
		return nil
	}
	file, err := a.readConfig(path)
	a.file = file
	return err
}

// readConfig reads a file and refuses keys that no flag has.
func (a *app) readConfig(path string) (*config.File, error) {
	file, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	return file, file.CheckKeys(a.known)
}

// knownKeys lists the flags of all commands, sorted, without those that make
// no sense in a file.
func knownKeys(n *kong.Node) []string {
	var names []string
	for _, f := range n.Flags {
		if f.Name != "help" && f.Name != "config.file" {
			names = append(names, f.Name)
		}
	}
	for _, child := range n.Children {
		names = append(names, knownKeys(child)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// checkConfigCmd is `hotsniff check-config`.
type checkConfigCmd struct {
	File string `arg:"" help:"The file to check." type:"path"`
}

// Run implements the command: it parses the file, and then the flags of the
// daemon with the file's values, as a start would do.
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
	if _, err := parser.Parse(nil); err != nil {
		return errors.New(c.File + ": " + err.Error())
	}
	if _, err := daemon.Run.detectFlags.engineConfig(a); err != nil {
		return errors.New(c.File + ": " + err.Error())
	}
	if _, err := daemon.Run.samplingFlags.config(); err != nil {
		return errors.New(c.File + ": " + err.Error())
	}
	if err := web.Validate(daemon.Run.WebConfig); err != nil {
		return fmt.Errorf("%s: web.config.file: %w", c.File, err)
	}
	_, err = a.out.Write([]byte(c.File + ": ok\n"))
	return err
}
