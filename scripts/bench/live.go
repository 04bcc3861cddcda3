package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hotsniff/hotsniff/internal/testkit"
	"github.com/hotsniff/hotsniff/scripts/lab"
)

const (
	// liveStep is how long one load takes; its number of requests is chosen
	// by the rate of a first one.
	liveStep    = time.Second
	liveAllowed = 2 * time.Minute // for one depth of pipelines
	liveClients = 50
	liveKeys    = 100_000
)

// observer is somebody who looks at the traffic of the server.
type observer struct {
	name  string
	start func(ctx context.Context, s *settings, server *testkit.Redis) (*watching, error)
}

// watching is a running observer.
type watching struct {
	stop   func()
	daemon *testkit.Daemon // of hotsniff, else nil
}

func nobody(context.Context, *settings, *testkit.Redis) (*watching, error) {
	return &watching{stop: func() {}}, nil
}

// sniffer returns how to start hotsniff with further flags.
func sniffer(args ...string) func(context.Context, *settings, *testkit.Redis) (*watching, error) {
	return func(_ context.Context, s *settings, server *testkit.Redis) (*watching, error) {
		var d *testkit.Daemon
		err := onCPU(s.cpus.observer, func() (err error) {
			d, err = testkit.StartDaemon(s.bin, server.Port, args...)
			return err
		})
		if err != nil {
			return nil, err
		}
		return &watching{stop: d.Kill, daemon: d}, nil
	}
}

// program returns how to start another observer.
func program(until string, args func(port string) []string) func(context.Context, *settings, *testkit.Redis) (*watching, error) {
	return func(ctx context.Context, s *settings, server *testkit.Redis) (*watching, error) {
		var b *background
		err := onCPU(s.cpus.observer, func() (err error) {
			words := args(strconv.Itoa(server.Port))
			b, err = startUntil(ctx, until, words[0], words[1:]...)
			return err
		})
		if err != nil {
			return nil, err
		}
		return &watching{stop: b.stop}, nil
	}
}

// budgetFlag finds the flag of the CPU budget in the help: builds without one
// never sample.
var budgetFlag = regexp.MustCompile(`--sampling\.cpu[-_]budget`)

// observers are the cases of a round, in any order.
func observers(ctx context.Context, s *settings) ([]observer, error) {
	_, help, err := runCommand(ctx, s.bin, "run", "--help")
	if err != nil {
		return nil, err
	}
	all := []observer{
		{"nobody", nobody},
		{"nobody again", nobody},
		{"tcpdump -w /dev/null", program("listening on", func(port string) []string {
			return []string{"tcpdump", "-i", "lo", "-w", "/dev/null", "tcp", "port", port}
		})},
		{"MONITOR", program("", func(port string) []string { return []string{"redis-cli", "-p", port, "monitor"} })},
	}
	if flag := budgetFlag.Find(help); flag != nil {
		return append(all, observer{unsampled, sniffer(string(flag) + "=0")}, observer{atBudget, sniffer()}), nil
	}
	return append(all, observer{unsampled, sniffer()}), nil
}

const (
	unsampled = "hotsniff, every request"
	atBudget  = "hotsniff at its default CPU budget"
)

// liveResult is what the rounds of one observer gave.
type liveResult struct {
	rate, cpu   []float64 // requests/s; Redis' CPU a request, ns
	seen, drops []float64 // % of the requests; packets
}

// live loads a Redis server with redis-benchmark while somebody looks, or
// nobody.
func live(ctx context.Context, s *settings, t *table) error {
	var server *testkit.Redis
	err := onCPU(s.cpus.server, func() (err error) {
		server, err = testkit.StartRedis()
		return err
	})
	if err != nil {
		return err
	}
	defer server.Stop()
	all, err := observers(ctx, s)
	if err != nil {
		return err
	}
	fill := &loader{s: s, server: server, command: "set", pipeline: 16, n: liveKeys}
	if _, err := fill.run(ctx); err != nil {
		return err
	}
	for _, depth := range []int{1, 16} {
		l := &loader{s: s, server: server, command: "get", pipeline: depth, n: 50_000}
		rate, err := l.run(ctx)
		if err != nil {
			return err
		}
		l.n = int(rate * liveStep.Seconds())
		results, err := l.rounds(ctx, all)
		if err != nil {
			return err
		}
		l.lines(t, all, results)
	}
	return nil
}

// loader runs redis-benchmark.
type loader struct {
	s        *settings
	server   *testkit.Redis
	command  string
	pipeline int
	n        int // requests
}

// run makes one load and returns its rate, as redis-benchmark says it.
func (l *loader) run(ctx context.Context) (rate float64, err error) {
	err = onCPU(l.s.cpus.load, func() error {
		_, out, err := runCommand(ctx, "redis-benchmark", "-p", strconv.Itoa(l.server.Port), "--csv", "-t", l.command, "-n", strconv.Itoa(l.n),
			"-c", strconv.Itoa(liveClients), "-P", strconv.Itoa(l.pipeline), "-r", strconv.Itoa(liveKeys), "-d", "64")
		if err != nil {
			return err
		}
		rate, err = benchmarkRate(string(out))
		return err
	})
	return rate, err
}

// benchmarkRate reads the last line of redis-benchmark --csv: "GET","73529.41",...
func benchmarkRate(csv string) (float64, error) {
	lines := strings.Split(strings.TrimSpace(csv), "\n")
	words := strings.Split(lines[len(lines)-1], `"`)
	if len(words) < 4 {
		return 0, fmt.Errorf("redis-benchmark says %q", csv)
	}
	return strconv.ParseFloat(words[3], 64)
}

// rounds runs every observer once a round, in an order that changes.
func (l *loader) rounds(ctx context.Context, all []observer) (map[string]*liveResult, error) {
	results := make(map[string]*liveResult)
	for _, o := range all {
		results[o.name] = &liveResult{}
	}
	order := rand.New(rand.NewPCG(1, uint64(l.pipeline)))
	for round, begin := 0, time.Now(); l.s.more(round, begin, liveAllowed); round++ {
		for _, i := range order.Perm(len(all)) {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err := l.step(ctx, &all[i], results[all[i].name]); err != nil {
				return nil, fmt.Errorf("%s: %w", all[i].name, err)
			}
		}
	}
	return results, nil
}

// step is one load under one observer.
func (l *loader) step(ctx context.Context, o *observer, r *liveResult) error {
	w, err := o.start(ctx, l.s, l.server)
	if err != nil {
		return err
	}
	defer w.stop()
	time.Sleep(150 * time.Millisecond)
	before, err := cpuTime(l.server.PID())
	if err != nil {
		return err
	}
	rate, err := l.run(ctx)
	if err != nil {
		return err
	}
	after, err := cpuTime(l.server.PID())
	if err != nil {
		return err
	}
	r.rate = append(r.rate, rate)
	r.cpu = append(r.cpu, float64(after-before)/float64(l.n))
	if w.daemon == nil {
		return nil
	}
	name := strings.ToUpper(l.command)
	p, err := lab.Settled(w.daemon.URL, func(p lab.Page) bool { return p.Command(name) >= float64(l.n) })
	if err != nil {
		return errors.Join(errors.New("hotsniff does not answer"), err)
	}
	r.seen = append(r.seen, 100*p.Command(name)/float64(l.n))
	r.drops = append(r.drops, p.Sum("hotsniff_capture_dropped_total"))
	return nil
}

// lines adds what was measured.
func (l *loader) lines(t *table, all []observer, results map[string]*liveResult) {
	a, b := results["nobody"], results["nobody again"]
	rate, cpu := means(a.rate, b.rate), means(a.cpu, b.cpu)
	load := fmt.Sprintf("b. live, -P %d: ", l.pipeline)
	t.add(line{what: load + "requests/s with nobody", unit: "thousand", values: scale(rate, 1e-3)},
		line{what: load + "Redis CPU a request with nobody", unit: "ns", values: cpu})
	for _, o := range all {
		if strings.HasPrefix(o.name, "nobody") {
			continue
		}
		r := results[o.name]
		throughput := line{what: load + "throughput with " + o.name, unit: "x", values: ratios(r.rate, rate), control: ratios(b.rate, a.rate)}
		request := line{what: load + "Redis CPU a request with " + o.name, unit: "x", values: ratios(r.cpu, cpu), control: ratios(b.cpu, a.cpu)}
		if r.seen != nil {
			throughput.goal, request.goal = atLeast(0.96), atMost(1.05)
		}
		t.add(throughput, request)
		if o.name == unsampled {
			t.add(line{what: load + "requests seen by " + o.name, unit: "%", values: r.seen, goal: atLeast(100)},
				line{what: load + "packets lost by " + o.name, values: r.drops, goal: atMost(0)})
		}
	}
}

func scale(v []float64, by float64) []float64 {
	out := make([]float64, len(v))
	for i := range v {
		out[i] = v[i] * by
	}
	return out
}
