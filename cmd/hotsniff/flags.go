package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/internal/config"
	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/resp"
	"github.com/hotsniff/hotsniff/topk"
)

// detectFlags say what counts as a request and what counts as hot; `run` and
// `read` share them.
type detectFlags struct {
	Port      string        `default:"6379" help:"Server ports: numbers and ranges, as in 6379,7000-7005."`
	Threshold float64       `default:"0.02" min:"0.001" max:"1" help:"Share of all key accesses (0..1) from which a key is hot."`
	Cooldown  time.Duration `default:"60s" min:"1s" max:"1h" help:"How long a key that is no longer hot stays on the list, as cooling."`
	Node      string        `help:"Name of this node in reports (default: the host name)." placeholder:"NAME"`
	privacyFlags
	CommandsFile string `name:"commands.file" type:"path" placeholder:"FILE" help:"More rows for the command table (modules, renamed commands), in the format of data/command-keys.tsv."`
}

// engineConfig turns the flags and the rules of the file into an engine's
// configuration.
func (f *detectFlags) engineConfig(a *app) (pipeline.Config, error) {
	var cfg pipeline.Config
	ports, err := capture.ParsePorts(f.Port)
	if err != nil {
		return cfg, a.blame("port", err)
	}
	rules, err := compileRules(a)
	if err != nil {
		return cfg, err
	}
	cfg.Ports = ports
	cfg.Detector = topk.Config{Threshold: f.Threshold, Cooldown: f.Cooldown, Rules: rules}
	if f.CommandsFile != "" {
		if cfg.Commands, err = readCommands(f.CommandsFile); err != nil {
			return cfg, cmp.Or(a.inFile("commands.file", err), err)
		}
	}
	return cfg, nil
}

// compileRules turns the rules of the file into the detector's.
func compileRules(a *app) (*topk.RuleSet, error) {
	given := a.file.Rules()
	if len(given) == 0 {
		return nil, nil
	}
	rules := make([]topk.Rule, len(given))
	for i, r := range given {
		rules[i] = topk.Rule{Name: r.Name, Group: r.Group, Pattern: r.Pattern, Share: r.Share, MinRate: r.MinRate,
			BytesShare: r.BytesShare, Action: r.Action, TTL: r.TTL, Copies: r.Copies, Ignore: r.Ignore}
		var err error
		if rules[i].Match, err = topk.ParseMatch(r.Match); err != nil {
			return nil, ruleError(a, r.Line, err)
		}
		if rules[i].Kind, err = topk.ParseKind(r.Kind); err != nil {
			return nil, ruleError(a, r.Line, err)
		}
	}
	set, err := topk.CompileRules(rules)
	var bad *topk.RuleError
	if errors.As(err, &bad) && bad.Index < len(given) {
		return nil, ruleError(a, given[bad.Index].Line, errors.New(bad.Reason))
	}
	return set, err
}

// ruleError names the line of a rule that the detector refused.
func ruleError(a *app, line int, err error) error {
	return &config.Error{Path: a.file.Path(), Line: line, Msg: "rules: " + err.Error()}
}

// readCommands reads a table of commands.
func readCommands(path string) ([]resp.Row, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := resp.ParseRows(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rows, nil
}

// node returns the node's name.
func (f *detectFlags) node() string {
	if f.Node != "" {
		return f.Node
	}
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// captureFlags say what to capture live.
type captureFlags struct {
	Interface string        `default:"any" help:"Network interface, or any for all."`
	Direction string        `name:"capture.direction" default:"in" enum:"in,out,both" help:"Which requests to see: those that arrive (in: on a Redis host), those that leave (out: on an application host), or both (${enum})."`
	Ring      int           `name:"capture.ring" default:"33554432" min:"65536" max:"1073741824" help:"Size of the kernel's ring in bytes."`
	Snaplen   int           `name:"capture.snaplen" default:"16384" min:"64" max:"262144" help:"Bytes captured of each packet. Requests of a pipeline beyond it are not seen."`
	Timeout   time.Duration `name:"capture.timeout" default:"100ms" min:"1ms" max:"10s" help:"Longest wait before packets are handed over."`
}

// samplingFlags bound what the capture costs.
type samplingFlags struct {
	Budget float64 `name:"sampling.cpu-budget" default:"0.10" min:"0" max:"1" help:"CPU time that the capture may take, as a part of one core. Above it, and when the kernel drops packets, only 1 packet in N is looked at, N up to 1024 as the load asks. 0: no limit."`
	Every  int     `name:"sampling.every" default:"0" placeholder:"N" help:"Always look at 1 packet in N: 1, 2, 4 ... 1024. 0: as the budget asks."`
}

func (f *samplingFlags) config(a *app) (pipeline.BudgetConfig, error) {
	cfg := pipeline.BudgetConfig{Ratio: f.Budget, Every: f.Every}
	if f.Every < 0 || f.Every > capture.MaxSampleEvery || f.Every&(f.Every-1) != 0 {
		return cfg, a.blame("sampling.every", fmt.Errorf("want a power of two up to %d, not %d", capture.MaxSampleEvery, f.Every))
	}
	return cfg, nil
}

func (f *captureFlags) config(ports *capture.PortSet) capture.LiveConfig {
	dir := map[string]capture.Direction{"in": capture.In, "out": capture.Out, "both": capture.Both}[f.Direction]
	return capture.LiveConfig{Interface: f.Interface, Ports: ports, RingBytes: f.Ring,
		Snaplen: f.Snaplen, Timeout: f.Timeout, Direction: dir}
}
