// Hotsniff finds the hot keys of a Redis server by looking at the packets that
// arrive at its port. It never talks to Redis to do so.
//
// Usage:
//
//	hotsniff run               the daemon: captures, serves metrics and the list
//	hotsniff read FILE...      the same over capture files
//	hotsniff top               live view: own capture, --url of a daemon, --read FILE
//	hotsniff watch             subscribes to the list and prints it
//	hotsniff pin|ban|unpin KEY keeps a key on the list, or off it
//	hotsniff doctor            says what keeps it from its work, and what to do
//	hotsniff check-config FILE
//	hotsniff completion SHELL  prints a completion script
//	hotsniff version
//
// Exit codes: 0, 1 for a failure, 2 for wrong usage. An error is one line on
// standard error that begins with "hotsniff: ", and hints on the lines below;
// nothing of it is on standard output.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/hotsniff/hotsniff/internal/config"
)

const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := runProcess(ctx, os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr}, confineCapture)
	stop()
	os.Exit(code)
}

// stdio are the standard streams, replaced in tests.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// cli is the command line. Every flag is also a key of the configuration file
// (dots are levels) and an environment variable HOTSNIFF_*.
type cli struct {
	ConfigFile string `name:"config.file" help:"YAML file with the same keys as the flags, and the rules." type:"path" placeholder:"FILE"`

	Run         runCmd         `cmd:"" help:"Capture and serve metrics and the hot-key list (the daemon)."`
	Read        readCmd        `cmd:"" help:"Count the keys of pcap and pcapng files."`
	Top         topCmd         `cmd:"" help:"Look at the hot keys live: of an own capture, a running daemon, or a file."`
	Watch       watchCmd       `cmd:"" help:"Subscribe to the hot list and print it, merged over all nodes."`
	Pin         pinCmd         `cmd:"" help:"Keep a key on the hot list of every node, whatever its traffic."`
	Ban         banCmd         `cmd:"" help:"Keep a key off the hot list of every node."`
	Unpin       unpinCmd       `cmd:"" help:"End what pin or ban began."`
	Doctor      doctorCmd      `cmd:"" help:"Check what keeps hotsniff from capturing, seeing or publishing, and say how to mend it."`
	CheckConfig checkConfigCmd `cmd:"" help:"Check a configuration file and exit."`
	Completion  completionCmd  `cmd:"" help:"Print a completion script for a shell."`
	Man         manCmd         `cmd:"" hidden:"" help:"Print the manual page."`
	Version     versionCmd     `cmd:"" help:"Print the version and exit."`
	ConfigDocs  configDocsCmd  `cmd:"" hidden:"" help:"Write CONFIGURATION.md."`
}

// app is what the commands share at run time.
type app struct {
	stdio
	ctx   context.Context
	args  []string                // of the command line
	k     *kong.Context           // what was made of them
	file  *config.File            // nil without --config.file
	flags map[string][]*kong.Flag // of all commands, by name: the keys a configuration file may have

	fileErr error // what is wrong with the file, for doctor

	// confine gives up capabilities of the process; nil where it is not ours.
	confine func(lowPorts bool) error
}

// exitCode is thrown by kong's exit hook, which --help uses.
type exitCode int

// run is main without the process: it returns the exit code.
func run(ctx context.Context, args []string, io stdio) int { return runProcess(ctx, args, io, nil) }

// runProcess is run, and confine is what a daemon gives its rights up with.
func runProcess(ctx context.Context, args []string, io stdio, confine func(lowPorts bool) error) (code int) {
	defer func() {
		if r := recover(); r != nil {
			c, ok := r.(exitCode)
			if !ok {
				panic(r)
			}
			code = int(c)
		}
	}()
	a := &app{stdio: io, ctx: ctx, args: args, confine: confine}
	k, err := a.parse(new(cli))
	if err != nil {
		return a.fail(err, codeOf(err))
	}
	if err := k.Run(); err != nil {
		return a.fail(err, codeOf(err))
	}
	return 0
}

// parse reads the configuration file and the command line into c.
func (a *app) parse(c *cli) (*kong.Context, error) {
	parser, err := kong.New(c,
		kong.Name("hotsniff"),
		kong.Description("Finds the hot keys of a Redis server by looking at its packets. It never talks to Redis to detect."),
		kong.Writers(a.out, a.err),
		kong.Exit(func(code int) { panic(exitCode(code)) }),
		kong.DefaultEnvars("HOTSNIFF"),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Resolvers(resolver{a}),
		kong.BindTo(a.ctx, (*context.Context)(nil)),
		kong.Bind(a),
	)
	if err != nil {
		panic(err) // a mistake in the struct tags
	}
	a.flags = flagsByName(parser.Model.Node)
	err = a.loadConfig()
	if commandOf(a.args) == "doctor" {
		err = a.examine(err)
	}
	if err != nil {
		return nil, err
	}
	if a.k, err = parser.Parse(a.args); err != nil {
		return nil, withHint(usageError{err}, "run 'hotsniff --help' for the commands and flags")
	}
	return a.k, a.checkRanges()
}

// fail prints err the way every error of hotsniff is printed.
func (a *app) fail(err error, code int) int {
	for i, line := range strings.Split(strings.TrimRight(err.Error(), "\n"), "\n") {
		if i == 0 {
			line = "hotsniff: " + line
		}
		fmt.Fprintln(a.err, line)
	}
	var h *hintError
	if errors.As(err, &h) {
		for _, hint := range h.hints {
			fmt.Fprintln(a.err, "hint: "+hint)
		}
	}
	return code
}

// hintError is an error with advice for the person at the terminal.
type hintError struct {
	error
	hints []string
}

func (e *hintError) Unwrap() error { return e.error }

func withHint(err error, hints ...string) error { return &hintError{err, hints} }

// usageError marks a failure as wrong usage.
type usageError struct{ error }

func codeOf(err error) int {
	var u usageError
	if errors.As(err, &u) {
		return exitUsage
	}
	return exitFailure
}
