package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
)

var (
	takenOffLine = regexp.MustCompile(`taken off +([0-9.]+) s after the step`)
	servedLine   = regexp.MustCompile(`after that +Redis served \d+ of \d+ reads of the key \(([0-9.]+) %\)`)
)

// loop runs the closed loop of the demo, which fails by its own goals.
func loop(ctx context.Context, s *settings, t *table) error {
	_, out, err := runCommand(ctx, s.demo, "-hotsniff", s.bin, "-loop")
	if err != nil {
		return err
	}
	for _, want := range []struct {
		pattern *regexp.Regexp
		line    line
	}{
		{takenOffLine, line{what: "closed loop: reads of a hot key off Redis after its step", unit: "s", goal: atMost(2)}},
		{servedLine, line{what: "closed loop: part of them that Redis serves then", unit: "%", goal: atMost(1)}},
	} {
		m := want.pattern.FindSubmatch(out)
		if m == nil {
			return fmt.Errorf("the demo does not say %v:\n%s", want.pattern, out)
		}
		v, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			return err
		}
		want.line.values = []float64{v}
		t.add(want.line)
	}
	return nil
}
