package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hotsniff/hotsniff/internal/export"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

// status reads /api/v1/status.
func (p *daemonProcess) status(t *testing.T) export.Status {
	t.Helper()
	var st export.Status
	body, err := p.get("/api/v1/status")
	if err == nil {
		err = json.Unmarshal([]byte(body), &st)
	}
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// TestRunSampledFindsTheSameShares: with one packet in 16, the hot key is listed
// with an interval that holds its share, and counts are those of all requests.
func TestRunSampledFindsTheSameShares(t *testing.T) {
	for _, depth := range []int{1, 16} {
		t.Run(fmt.Sprintf("pipelines of %d", depth), func(t *testing.T) {
			redis := live(t)
			p := startDaemon(t, redis.Port, "--interface", "lo", "--sampling.every", "16")
			load := &testkit.Workload{Addr: redis.Addr(), Conns: 10, Pipeline: depth, Rate: 6000 * depth, HotKey: "star",
				Share: func(time.Duration) float64 { return 0.26 }, Keys: 10000, Seed: 7}
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			if err := load.Run(ctx); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // the last packets, and a tick
			r, sent := p.report(t), float64(load.Sent())
			// A packet is one draw with depth requests: the deviation of
			// the count is that of the number of packets.
			if sd := float64(depth) * math.Sqrt(sent/float64(depth)*15); math.Abs(float64(r.Requests)-sent) > 5*sd {
				t.Errorf("got %d requests; want %.0f within %.0f", r.Requests, sent, 5*sd)
			}
			if r.SampleEvery != 16 || r.SampledAccesses*16 != r.Accesses {
				t.Errorf("1 in %d: %d of %d", r.SampleEvery, r.SampledAccesses, r.Accesses)
			}
			k := keyOf(r, "star")
			if k == nil || k.State != "hot" {
				t.Fatalf("star is not hot: %+v", k)
			}
			truth, _ := load.TrueShare(time.Now(), time.Minute)
			t.Logf("%.0f requests, share %.4f [%.4f, %.4f], true %.4f", sent, k.Share, k.ShareLow, k.ShareHigh, truth)
			// One time in 50 the truth lies outside by nature: by a third of
			// the width it never does.
			slack := (k.ShareHigh - k.ShareLow) / 3
			if truth < k.ShareLow-slack || truth > k.ShareHigh+slack {
				t.Errorf("got share %v [%v, %v]; true %v", k.Share, k.ShareLow, k.ShareHigh, truth)
			}
			if body, err := p.get("/metrics"); err != nil || !strings.Contains(body, `hotsniff_sample_every{stage="kernel"} 16`) {
				t.Errorf("metrics: %v", err)
			}
			if st := p.status(t); !st.Sampling.Fixed || st.Sampling.KernelEvery != 16 || math.Abs(st.Sampling.Coverage-1) > 0.02 {
				t.Errorf("status: %+v", st.Sampling)
			}
		})
	}
}

// TestRunKeepsItsBudget: under load N rises, the list stays right, and when the
// load has ended every packet is looked at again.
func TestRunKeepsItsBudget(t *testing.T) {
	redis := live(t)
	// No machine captures 60,000 requests a second for so little.
	p := startDaemon(t, redis.Port, "--interface", "lo", "--sampling.cpu-budget", "0.004")
	load := &testkit.Workload{Addr: redis.Addr(), Conns: 10, Pipeline: 4, Rate: 60_000, HotKey: "star",
		Share: func(time.Duration) float64 { return 0.26 }, Keys: 10000, Seed: 3}
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- load.Run(ctx) }()
	eventually(t, "N rises", func() bool { return p.status(t).Sampling.KernelEvery >= 2 })
	rose := time.Since(load.Start())
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	st, r := p.status(t), p.report(t)
	t.Logf("N rose within %v; at the end it is %d with a cost of %.4f", rose, st.Sampling.KernelEvery, st.CPURatio)
	if r.SampleEvery < 2 || st.Sampling.CPUBudget != 0.004 {
		t.Errorf("reported: 1 in %d, %+v", r.SampleEvery, st.Sampling)
	}
	k := keyOf(r, "star")
	if truth, _ := load.TrueShare(time.Now(), time.Minute); k == nil || k.State != "hot" || math.Abs(k.Share-truth) > 0.05 {
		t.Errorf("star: %+v; want a share of %v", k, truth)
	}
	for _, other := range r.Keys {
		if other.Key != "star" && other.State == "hot" {
			t.Errorf("%s is hot with a share of %v", other.Key, other.Share)
		}
	}
	end := time.Now()
	eventually(t, "every packet is looked at again", func() bool { return p.status(t).Sampling.KernelEvery == 1 })
	t.Logf("N = 1 again after %v", time.Since(end))
	// All of a new load is counted, unless so small a budget thins even that:
	// then about as many as were sent.
	before := p.report(t).Requests
	again := &testkit.Workload{Addr: redis.Addr(), Conns: 4, Rate: 500, HotKey: "star",
		Share: func(time.Duration) float64 { return 0.26 }, Keys: 10000, Seed: 3}
	ctx2, cancel2 := context.WithTimeout(context.Background(), time.Second)
	defer cancel2()
	if err := again.Run(ctx2); err != nil {
		t.Fatal(err)
	}
	thinned := false
	eventually(t, "all of the new load is counted", func() bool {
		thinned = thinned || p.status(t).Sampling.KernelEvery > 1
		n, sent := p.report(t).Requests-before, uint64(again.Sent())
		return n >= sent || thinned && n >= sent/2
	})
	if _, err := p.stop(t, syscall.SIGTERM); err != nil {
		t.Errorf("stopped with %v\n%s", err, p.logText())
	}
}
