package main

import (
	"io"
	"strings"
	"time"

	"github.com/prometheus/exporter-toolkit/web"

	"github.com/hotsniff/hotsniff/actions"
	"github.com/hotsniff/hotsniff/internal/doctor"
)

// doctorCmd is `hotsniff doctor`. It has the flags of the daemon, and checks
// what the daemon would do with them.
type doctorCmd struct {
	runCmd
	Wait   time.Duration `default:"3s" min:"10ms" max:"10m" help:"How long to capture."`
	Format string        `default:"table" enum:"table,json" help:"Output format: a line a check, or one JSON object (${enum})."`
}

const (
	procDir = "/proc"

	// doctorRedisTimeout bounds the checks at the publishing Redis.
	doctorRedisTimeout = 10 * time.Second
)

// Run implements the command.
func (c *doctorCmd) Run(a *app) error {
	cfg, err := c.engineConfig(a)
	if err != nil {
		return err
	}
	r := &doctor.Report{}
	r.Add(c.checkConfig(a), doctor.Capability(procDir), doctor.Kernel(), doctor.Device(c.Interface),
		doctor.Server(procDir, cfg.Ports, c.Direction == "out"))
	r.Add(c.checkMetrics()...)
	r.Add(c.checkPublish(a)...)
	r.Add(doctor.Traffic(a.ctx, c.captureFlags.config(cfg.Ports), cfg, c.Wait)...)
	write := r.WriteText
	if c.Format == "json" {
		write = r.WriteJSON
	}
	if err := write(a.out); err != nil {
		return err
	}
	return r.Err()
}

func (c *doctorCmd) checkConfig(a *app) doctor.Finding {
	switch {
	case a.fileErr != nil:
		text, _, _ := strings.Cut(a.fileErr.Error(), "\n")
		return doctor.Finding{Status: doctor.Failure, Name: "config", Found: text, Fix: "mend the file; the checks below are of the flags and defaults"}
	case a.file == nil:
		return doctor.Finding{Name: "config", Found: "no --config.file; flags and defaults"}
	}
	return doctor.Finding{Name: "config", Found: a.file.Path() + " is valid"}
}

func (c *doctorCmd) checkMetrics() []doctor.Finding {
	if err := web.Validate(c.WebConfig); err != nil {
		return []doctor.Finding{{Status: doctor.Failure, Name: "metrics-port", Found: err.Error(), Fix: "mend the file of --web.config.file"}}
	}
	if c.SystemdSocket {
		return []doctor.Finding{{Name: "metrics-port", Found: "handed over by systemd"}}
	}
	return doctor.Metrics(procDir, c.webFlags.Listen...)
}

func (c *doctorCmd) checkPublish(a *app) []doctor.Finding {
	f := &c.publishFlags
	if !f.Redis.given() {
		return []doctor.Finding{{Name: "publish", Found: "off: no --publish.redis-url"}}
	}
	client, err := actions.Connect(f.Redis.connection())
	if err != nil {
		return []doctor.Finding{{Status: doctor.Failure, Name: "publish", Found: err.Error(), Fix: "see 'hotsniff doctor --help', --publish.*"}}
	}
	defer client.Close()
	quiet(client)
	return doctor.Publish(a.ctx, client, doctor.PublishConfig{Node: c.node(), Channel: f.Redis.Channel, Sharded: f.Redis.Sharded,
		Retain: f.Retain, Manual: f.Manual, Timeout: doctorRedisTimeout})
}

// examine keeps what is wrong with the configuration file as a finding, where
// other commands end: err is of loadConfig. A file that is wrong is left out.
func (a *app) examine(err error) error {
	if err == nil && a.file != nil {
		err = (&checkConfigCmd{File: a.file.Path()}).Run(&app{stdio: stdio{out: io.Discard, err: io.Discard}, ctx: a.ctx, flags: a.flags})
	}
	if err != nil {
		a.fileErr, a.file = err, nil
	}
	return nil
}

// commandOf returns the command among the arguments: the first word that is no
// flag nor the name of the configuration file.
func commandOf(args []string) string {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--config.file":
			i++
		case !strings.HasPrefix(args[i], "-"):
			return args[i]
		}
	}
	return ""
}
