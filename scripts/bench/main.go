// The benchmark records real traffic of redis-benchmark into files and reads
// them with hotsniff beside tcpdump, which does the least that reading a file
// through libpcap can cost. Runs alternate, so that both meet the same machine;
// tcpdump runs twice a round: how far the two are apart (A/A) is the noise.
// Then it measures how long a hot key takes from the wire to the channel.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hotsniff/hotsniff/internal/report"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

func main() {
	bin := flag.String("hotsniff", "bin/hotsniff", "the program to measure")
	rounds := flag.Int("rounds", 9, "rounds for each file; 0: do not read files")
	dir := flag.String("dir", "", "keep the recordings in this directory and reuse them")
	steps := flag.Int("steps", 36, "steps of the delay from packet to subscriber; 0: do not measure it")
	flag.Parse()
	err := error(nil)
	if *rounds > 0 {
		err = bench(*bin, *dir, *rounds)
	}
	if err == nil && *steps > 0 {
		err = delay(*bin, *steps)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// recording is a file of traffic and how it was made.
type recording struct {
	name     string
	requests uint64 // sent by redis-benchmark
	args     []string
}

var recordings = []recording{
	{"getset", 400_000, []string{"-t", "set,get", "-n", "200000", "-r", "1000", "-c", "20"}},
	{"set-p16", 1_000_000, []string{"-t", "set", "-n", "1000000", "-r", "1000", "-c", "20", "-P", "16"}},
}

func bench(bin, dir string, rounds int) error {
	if dir == "" {
		tmp, err := os.MkdirTemp("", "hotsniff-bench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		dir = tmp
	}
	fmt.Println("reading files, CPU time (user + system), median [min .. max] over", rounds, "alternating rounds:")
	for _, r := range recordings {
		path := filepath.Join(dir, r.name+".pcap")
		port, err := r.record(path)
		if err != nil {
			return fmt.Errorf("record %s: %w", r.name, err)
		}
		if err := r.measure(bin, path, port, rounds); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

// record writes the traffic of one redis-benchmark to path and returns the
// server's port, which stands in a file beside it.
func (r *recording) record(path string) (port string, err error) {
	if kept, err := os.ReadFile(path + ".port"); err == nil {
		return string(kept), nil
	}
	redis, err := testkit.StartRedis()
	if err != nil {
		return "", err
	}
	defer redis.Stop()
	port = strconv.Itoa(redis.Port)
	dump := exec.Command("tcpdump", "-i", "lo", "-B", "262144", "-s", "0", "-w", path, "tcp", "port", port)
	var log bytes.Buffer
	dump.Stderr = &log
	if err := dump.Start(); err != nil {
		return "", err
	}
	time.Sleep(time.Second) // until it captures
	load := exec.Command("redis-benchmark", append([]string{"-p", port, "-q"}, r.args...)...)
	out, err := load.CombinedOutput()
	time.Sleep(time.Second) // until the ring is empty
	dump.Process.Signal(os.Interrupt)
	dump.Wait()
	if err != nil {
		return "", fmt.Errorf("redis-benchmark: %w: %s", err, out)
	}
	if !strings.Contains(log.String(), "\n0 packets dropped by kernel") {
		return "", fmt.Errorf("tcpdump lost packets; run it on a quieter machine:\n%s", log.String())
	}
	return port, os.WriteFile(path+".port", []byte(port), 0o644)
}

// sample is the cost of one process.
type sample struct{ cpu, wall time.Duration }

func measured(cmd *exec.Cmd) (sample, []byte, error) {
	var out bytes.Buffer
	cmd.Stdout = &out
	begin := time.Now()
	err := cmd.Run()
	if err != nil {
		return sample{}, nil, fmt.Errorf("%s: %w", cmd.Path, err)
	}
	s := cmd.ProcessState
	return sample{cpu: s.UserTime() + s.SystemTime(), wall: time.Since(begin)}, out.Bytes(), nil
}

func (r *recording) measure(bin, path, port string, rounds int) error {
	floor := func() *exec.Cmd { return exec.Command("tcpdump", "-r", path, "-w", "/dev/null") }
	ours := func() *exec.Cmd { return exec.Command(bin, "read", "--port", port, "--format", "json", path) }
	var a, b, h []sample
	var rep report.Report
	for range rounds {
		for _, step := range []struct {
			cmd  *exec.Cmd
			into *[]sample
		}{{floor(), &a}, {ours(), &h}, {floor(), &b}} {
			s, out, err := measured(step.cmd)
			if err != nil {
				return err
			}
			*step.into = append(*step.into, s)
			if step.into == &h {
				if err := json.Unmarshal(out, &rep); err != nil {
					return err
				}
			}
		}
	}
	// redis-benchmark itself asks CONFIG GET twice.
	if got := rep.Commands["GET"] + rep.Commands["SET"]; got != r.requests {
		return fmt.Errorf("hotsniff saw %d of %d requests", got, r.requests)
	}
	perRound := make([]float64, rounds)
	control := make([]float64, rounds)
	for i := range perRound {
		perRound[i] = 2 * float64(h[i].cpu) / float64(a[i].cpu+b[i].cpu)
		control[i] = float64(b[i].cpu) / float64(a[i].cpu)
	}
	cpu := func(s []sample) []float64 {
		return apply(s, func(s sample) float64 { return float64(s.cpu.Microseconds()) / float64(rep.Capture.Packets) })
	}
	fmt.Printf("%s: %d packets, %d requests, all seen, %d distinct keys\n", r.name, rep.Capture.Packets, rep.Requests, rep.DistinctKeys)
	fmt.Printf("  tcpdump -r FILE -w /dev/null   %s us a packet (A/A %s)\n", spread(append(cpu(a), cpu(b)...)), spread(control))
	fmt.Printf("  hotsniff read                  %s us a packet\n", spread(cpu(h)))
	fmt.Printf("  ratio                          %s\n", spread(perRound))
	fmt.Printf("  hotsniff, requests/s of CPU    %s million\n", spread(apply(h, func(s sample) float64 {
		return float64(rep.Requests) / s.cpu.Seconds() / 1e6
	})))
	fmt.Printf("  wall clock                     %s s hotsniff, %s s tcpdump\n",
		spread(apply(h, func(s sample) float64 { return s.wall.Seconds() })),
		spread(apply(append(a, b...), func(s sample) float64 { return s.wall.Seconds() })))
	return nil
}

func apply(in []sample, f func(sample) float64) []float64 {
	out := make([]float64, len(in))
	for i, s := range in {
		out[i] = f(s)
	}
	return out
}

// spread prints the median and the range.
func spread(v []float64) string {
	v = slices.Sorted(slices.Values(v))
	return fmt.Sprintf("%.2f [%.2f .. %.2f]", v[len(v)/2], v[0], v[len(v)-1])
}
