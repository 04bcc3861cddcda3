package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"time"

	"github.com/hotsniff/hotsniff/internal/report"
)

// filesAllowed is for one recording.
const filesAllowed = 40 * time.Second

// files reads recordings with hotsniff beside tcpdump, which does the least
// that reading a file through libpcap can cost; tcpdump runs twice a round.
func files(ctx context.Context, s *settings, t *table) error {
	for _, r := range recordings() {
		if err := r.record(ctx, s.dir); err != nil {
			return fmt.Errorf("record %s: %w", r.what, err)
		}
		if err := r.check(ctx, s.bin, t); err != nil {
			return err
		}
		if err := r.measure(ctx, s, t); err != nil {
			return fmt.Errorf("%s: %w", r.what, err)
		}
	}
	return nil
}

// readReport reads a file with hotsniff.
func readReport(ctx context.Context, bin string, args ...string) (cost, *report.Report, error) {
	c, out, err := runCommand(ctx, bin, append([]string{"read", "--format", "json"}, args...)...)
	if err != nil {
		return c, nil, err
	}
	var rep report.Report
	return c, &rep, json.Unmarshal(out, &rep)
}

// check compares every request and every key with what the server had.
func (r *recording) check(ctx context.Context, bin string, t *table) error {
	_, rep, err := readReport(ctx, bin, "--port", r.port, "--top", "0", r.path)
	if err != nil {
		return err
	}
	exact := 0
	for i := range rep.Keys {
		if k := &rep.Keys[i]; r.keys[k.Key] == k.Accesses && k.Accesses > 0 {
			exact++
		}
	}
	// A key that was invented makes one less exact.
	exact -= max(len(rep.Keys)-len(r.keys), 0)
	t.add(line{what: "a. file, " + r.what + ": requests counted", unit: "%", goal: atLeast(100),
		values: []float64{100 * float64(rep.Commands["GET"]+rep.Commands["SET"]) / float64(r.requests)}},
		line{what: fmt.Sprintf("a. file, %s: keys with the exact count, of %d", r.what, len(r.keys)), unit: "%", goal: atLeast(100),
			values: []float64{100 * float64(exact) / float64(len(r.keys))}})
	return nil
}

func (r *recording) measure(ctx context.Context, s *settings, t *table) error {
	floor := []string{"tcpdump", "-r", r.path, "-w", "/dev/null"}
	ours := []string{s.bin, "read", "--port", r.port, "--format", "json", r.path}
	var a, b, h []float64
	var perSecond []float64
	for round, begin := 0, time.Now(); s.more(round, begin, filesAllowed); round++ {
		for _, step := range []struct {
			args []string
			into *[]float64
		}{{floor, &a}, {ours, &h}, {floor, &b}} {
			c, _, err := runCommand(ctx, step.args[0], step.args[1:]...)
			if err != nil {
				return err
			}
			*step.into = append(*step.into, c.cpu.Seconds())
			if step.into == &h {
				perSecond = append(perSecond, float64(r.requests)/c.cpu.Seconds()/1e6)
			}
		}
	}
	t.add(line{what: "a. file, " + r.what + ": CPU of hotsniff read / tcpdump -r -w /dev/null", unit: "x",
		values: ratios(h, means(a, b)), goal: atMost(3), control: ratios(b, a)},
		line{what: "a. file, " + r.what + ": requests a second of one core", unit: "million", values: perSecond})
	return r.dissector(ctx, t, median(means(a, b)))
}

// dissector measures tshark's RESP dissector once, where there is one.
func (r *recording) dissector(ctx context.Context, t *table, floor float64) error {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		return nil
	}
	c, _, err := runCommand(ctx, tshark, "-r", r.path, "-d", "tcp.port=="+r.port+",resp", "-T", "fields", "-e", "resp.bulk_string.value")
	if err != nil {
		t.skip("tshark over "+r.what, err.Error())
		return nil
	}
	t.add(line{what: "a. file, " + r.what + ": CPU of tshark / tcpdump (once)", unit: "x", values: []float64{c.cpu.Seconds() / floor}})
	return nil
}
