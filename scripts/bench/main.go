// The benchmark measures hotsniff on this machine and prints one table. Each
// line is a ratio (or a difference) of things that were measured in one
// interleaved run, so that all of them meet the same machine; in the same
// interleaving something is measured against itself (A/A), and where that is
// further off than the value from its goal, the line is void.
//
// As root it does everything in a network namespace of its own, which the
// kernel removes with the last process in it. Without root the parts that
// capture are skipped, and the table says so.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hotsniff/hotsniff/scripts/lab"
)

// settings are the flags.
type settings struct {
	bin, demo string
	dir       string // of the recordings
	rounds    int
	steps     int
	limit     time.Duration
	cpus      cpus
	begin     time.Time
}

// left is the time that remains for parts that may be left out.
func (s *settings) left() time.Duration { return s.limit - time.Since(s.begin) }

// leastRounds are made however long they take: with fewer the range of the
// median cannot be told.
const leastRounds = 5

// more reports whether a part that began then and may take so long has another
// round to do.
func (s *settings) more(round int, begin time.Time, allowed time.Duration) bool {
	return round < s.rounds && (round < leastRounds || time.Since(begin) < allowed)
}

// part is one item of the benchmark.
type part struct {
	name    string // of -only
	what    string
	capture bool // needs root
	measure func(ctx context.Context, s *settings, t *table) error
}

var parts = []part{
	{"a", "reading files", true, files},
	{"b", "live beside redis-benchmark", true, live},
	{"c", "what a reply costs its sender", true, replies},
	{"d", "flow table", false, flows},
	{"e", "growth", false, growth},
	{"m", "memory and scrape as keys and connections grow", true, growthLive},
	{"f", "lost packets", false, loss},
	{"g", "delay from packet to subscriber", true, delay},
	{"l", "the closed loop", true, loop},
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == parkArgument {
		parkHere()
		return
	}
	s := &settings{cpus: chooseCPUs(), begin: time.Now()}
	flag.StringVar(&s.bin, "hotsniff", "bin/hotsniff", "the program to measure")
	flag.StringVar(&s.demo, "demo", "bin/hotsniff-demo", "the demo, for its closed loop")
	flag.StringVar(&s.dir, "dir", "", "keep the recordings in this directory and reuse them")
	flag.IntVar(&s.rounds, "rounds", 11, "interleaved rounds of every part, fewer where they take long")
	flag.IntVar(&s.steps, "steps", 24, "steps of the delay from packet to subscriber")
	flag.DurationVar(&s.limit, "limit", 9*time.Minute+30*time.Second, "what would end later is left out (100,000,000 keys)")
	only := flag.String("only", "", "parts to measure, as in a,d; all by default: "+partNames())
	profile := flag.String("profile", "", "instead, write a CPU profile of the whole path to this file")
	pgo := flag.String("pgo", "", "instead, measure two programs (with a comma between) in turn, for benchstat; see -out")
	out := flag.String("out", ".", "directory for off.txt and pgo.txt of -pgo")
	format := flag.String("format", "text", "of the table: text or markdown")
	flag.Parse()
	if *format != "text" && *format != "markdown" || !known(*only) || s.rounds < 1 || s.steps < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := lab.EnterNamespace(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var ok bool
	var err error
	switch {
	case *profile != "":
		err, ok = recordProfile(ctx, *profile), true
	case *pgo != "":
		err, ok = comparePGO(ctx, *pgo, *out), true
	default:
		ok, err = measure(ctx, s, *only, *format == "markdown")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	if !ok || err != nil {
		stop()
		os.Exit(1)
	}
}

func partNames() string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name+" "+p.what)
	}
	return strings.Join(names, ", ")
}

// known reports whether only names parts.
func known(only string) bool {
	for name := range strings.SplitSeq(only, ",") {
		if name != "" && !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return false
		}
	}
	return true
}

// measure does the parts and prints the table, also what there is of it when a
// part cannot be measured or ctx ends. It reports whether no goal was missed.
func measure(ctx context.Context, s *settings, only string, markdown bool) (ok bool, err error) {
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "hotsniff-bench-"); err != nil {
			return false, err
		}
		defer os.RemoveAll(s.dir)
	}
	var t table
	for _, p := range parts {
		switch {
		case only != "" && !slices.Contains(strings.Split(only, ","), p.name):
			continue
		case p.capture && !lab.InNamespace():
			t.skip(p.what, "needs root, for captures in a network namespace of its own")
			continue
		case ctx.Err() != nil:
			continue
		}
		fmt.Fprintf(os.Stderr, "%4.0f s  %s: %s\n", time.Since(s.begin).Seconds(), p.name, p.what)
		if e := p.measure(ctx, s, &t); e != nil && ctx.Err() == nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", p.what, e))
		}
	}
	if ctx.Err() != nil {
		return false, errors.New("interrupted")
	}
	t.note("%s; at most %d rounds; it took %.0f s", machine(), s.rounds, time.Since(s.begin).Seconds())
	t.note("CPUs: Redis and the sender of replies on %d, the load generator on %d, hotsniff, tcpdump and MONITOR on %d",
		s.cpus.server, s.cpus.load, s.cpus.observer)
	t.write(os.Stdout, markdown)
	return t.count(failed) == 0, err
}

// machine says where this was measured.
func machine() string {
	var u unix.Utsname
	unix.Uname(&u)
	cpu := ""
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, rest, _ := strings.Cut(string(info), "model name")
		cpu, _, _ = strings.Cut(strings.TrimLeft(rest, "\t: "), "\n")
	}
	return fmt.Sprintf("%d CPUs (%s), Linux %s, %s", runtime.NumCPU(), strings.TrimSpace(cpu),
		unix.ByteSliceToString(u.Release[:]), runtime.Version())
}
