package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"

	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/internal/pipeline"
)

const (
	profileRequests = 8_000_000 // a few seconds of CPU each: hundreds of samples
	compareRequests = 2_000_000
	compareRounds   = 15
)

// profileLoads are small requests with and without pipelines, over few and many
// keys and connections.
func profileLoads(requests int) []growthLoad {
	return []growthLoad{
		{keys: 100_000, conns: 50, depth: 1, requests: requests / 2, network: 1},
		{keys: 1_000_000, conns: 5000, depth: 1, requests: requests / 4, network: 1},
		{keys: 100_000, conns: 50, depth: 16, requests: requests, network: 1},
	}
}

// recordProfile writes a CPU profile of the engine over generated traffic, in
// windows as the daemon has them and as one window.
func recordProfile(ctx context.Context, path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	for _, load := range profileLoads(profileRequests) {
		for _, whole := range []bool{false, true} {
			if err := runEngine(ctx, &load, whole); err != nil {
				return err
			}
		}
	}
	loads := []float64{0, lossRate} // replies, holes, values over several segments
	for _, rate := range loads {
		if err := engineOver(ctx, true, func(w io.Writer) error { _, err := lossy(w, 16, rate); return err }); err != nil {
			return err
		}
	}
	return nil
}

func runEngine(ctx context.Context, load *growthLoad, whole bool) error {
	return engineOver(ctx, whole, load.file)
}

// engineOver runs the engine over what write writes.
func engineOver(ctx context.Context, whole bool, write func(io.Writer) error) error {
	r, w := io.Pipe()
	defer r.Close()
	go func() {
		buffered := bufio.NewWriterSize(w, 1<<20)
		err := write(buffered)
		w.CloseWithError(errors.Join(err, buffered.Flush()))
	}()
	src, err := capture.OpenFiles([]string{"-"}, r)
	if err != nil {
		return err
	}
	defer src.Close()
	e, err := pipeline.New(pipeline.Config{Whole: whole}, src)
	if err != nil {
		return err
	}
	return e.Run(ctx)
}

// comparePGO measures two builds on the same files in turn, and writes what
// each took in the format of Go benchmarks, for benchstat. bins are two paths
// with a comma between them.
func comparePGO(ctx context.Context, bins, dir string) error {
	off, on, ok := strings.Cut(bins, ",")
	if !ok {
		return errors.New("-pgo: want two programs, as in without,with")
	}
	outputs := []struct {
		bin  string
		path string
		text strings.Builder
	}{{bin: off, path: "off.txt"}, {bin: on, path: "pgo.txt"}}
	for i, load := range profileLoads(compareRequests) {
		file := filepath.Join(dir, fmt.Sprint("load", i, ".pcap"))
		if err := writeFile(file, load.file); err != nil {
			return err
		}
		for range compareRounds {
			for j := range outputs {
				o := &outputs[j]
				c, _, err := runCommand(ctx, o.bin, "read", "--window", "60s", "--format", "json", file)
				if err != nil {
					return err
				}
				fmt.Fprintf(&o.text, "BenchmarkRead/keys=%d/connections=%d/pipeline=%d 1 %d ns/op\n", load.keys, load.conns, load.depth, c.cpu.Nanoseconds())
			}
		}
		os.Remove(file)
	}
	for i := range outputs {
		if err := os.WriteFile(filepath.Join(dir, outputs[i].path), []byte(outputs[i].text.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
