package main

import (
	"math"
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		in   []float64
		want float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 1, 2, 100}, 3},
	} {
		if got := median(tt.in); got != tt.want {
			t.Errorf("median(%v) = %v, want %v", tt.in, got, tt.want)
		}
	}
	if got := median(nil); !math.IsNaN(got) {
		t.Errorf("median of nothing = %v, want NaN", got)
	}
	v := []float64{2, 1}
	if median(v); v[0] != 2 {
		t.Error("median changed its argument")
	}
}

func TestMedianRange(t *testing.T) {
	for _, tt := range []struct {
		n      int // values 1..n
		lo, hi float64
	}{
		{1, 1, 1}, {3, 1, 3}, {5, 1, 5}, {7, 1, 7}, {9, 2, 8}, {11, 3, 9}, {15, 4, 12},
	} {
		v := make([]float64, tt.n)
		for i := range v {
			v[i] = float64(tt.n - i)
		}
		if lo, hi := medianRange(v); lo != tt.lo || hi != tt.hi {
			t.Errorf("medianRange of 1..%d = %v..%v, want %v..%v", tt.n, lo, hi, tt.lo, tt.hi)
		}
	}
}

func TestVerdict(t *testing.T) {
	same := func(v float64) []float64 { return []float64{v, v, v, v, v} }
	quiet, noisy := []float64{.99, 1, 1.01, 1, 1}, []float64{.8, 1, 1.2, 1, .9}
	tests := []struct {
		name string
		line line
		want verdict
	}{
		{"below its upper bound by more than the noise", line{values: same(1.5), goal: atMost(3), control: noisy}, passed},
		{"above its upper bound by more than the noise", line{values: same(4.5), goal: atMost(3), control: noisy}, failed},
		{"nearer to the goal than the control to 1", line{values: same(.99), goal: atLeast(.96), control: noisy}, void},
		{"the same on a quiet machine", line{values: same(.99), goal: atLeast(.96), control: quiet}, passed},
		{"missed by less than the noise", line{values: same(.95), goal: atLeast(.96), control: noisy}, void},
		{"missed on a quiet machine", line{values: same(.90), goal: atLeast(.96), control: quiet}, failed},
		{"a control beside 1 without any range", line{values: same(.99), goal: atLeast(.96), control: same(1.05)}, void},
		{"a difference within the noise of differences", line{values: same(20), goal: atMost(60), control: []float64{-50, 0, 0, 0, 1}, differs: true}, void},
		{"a difference beyond the noise of differences", line{values: same(20), goal: atMost(60), control: []float64{-9, 0, 0, 0, 9}, differs: true}, passed},
		{"a count needs no control", line{values: same(100), goal: atLeast(100)}, passed},
		{"a count that is missed", line{values: same(99.9), goal: atLeast(100)}, failed},
		{"no goal", line{values: same(1)}, noGoal},
		{"nothing measured", line{goal: atMost(1)}, failed},
	}
	for _, tt := range tests {
		if got := tt.line.verdict(); got != tt.want {
			t.Errorf("%s: %q, want %q (noise %v, margin %v)", tt.name, got, tt.want, tt.line.noise(), tt.line.margin())
		}
	}
}

func TestTable(t *testing.T) {
	var tab table
	tab.add(line{what: "a|b", unit: "x", values: []float64{1.5, 1.25, 2}, goal: atMost(3), control: []float64{1, .9, 1.1}})
	tab.add(line{what: "c", unit: "ns", values: []float64{12}, goal: atMost(40), control: []float64{1}})
	tab.skip("live", "no rights")
	var text, md strings.Builder
	tab.write(&text, false)
	tab.write(&md, true)
	for _, want := range []string{"1.50 [1.25 .. 2]x", "<= 3x", "1 [0.90 .. 1.10]", "12 ns", "<= 40 ns", "skipped: live: no rights", "2 passed, 0 failed, 0 void"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("text lacks %q:\n%s", want, text.String())
		}
	}
	if want := `| a\|b | 1.50 [1.25 .. 2]x | <= 3x | 1 [0.90 .. 1.10] | pass |`; !strings.Contains(md.String(), want) {
		t.Errorf("markdown lacks %q:\n%s", want, md.String())
	}
}
