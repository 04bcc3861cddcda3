package pipeline

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// TestSimulate takes random traffic of random clients, damages the capture of
// it and runs the engine over what is left, beside an oracle that knows what
// was sent. HOTSNIFF_SIM_RUNS sets the number of runs, HOTSNIFF_SIM_SEED
// repeats one.
//
//	traffic (sim_traffic_test.go)  clients, requests, replies as segments
//	damage (sim_damage_test.go)    loss, order, copies, cuts, clocks
//	oracle (sim_oracle_test.go)    what must be counted, and when
//	checks (sim_check_test.go)     every property that is asserted
func TestSimulate(t *testing.T) {
	runs := 1000
	if raceEnabled || testing.Short() {
		runs = 60 // the race detector looks for nothing here: one goroutine
	}
	if v, err := strconv.Atoi(os.Getenv("HOTSNIFF_SIM_RUNS")); err == nil {
		runs = v
	}
	first := uint64(1)
	if v, err := strconv.ParseUint(os.Getenv("HOTSNIFF_SIM_SEED"), 10, 64); err == nil {
		first, runs = v, 1
	}
	const lanes = 2
	for lane := range lanes {
		t.Run(fmt.Sprint(lane), func(t *testing.T) {
			t.Parallel()
			for i := lane; i < runs; i += lanes {
				seed := first + uint64(i)
				if err := simulateTwice(seed); err != nil {
					t.Fatalf("seed %d: %v\nrepeat: HOTSNIFF_SIM_SEED=%d go test -run TestSimulate ./internal/pipeline", seed, err, seed)
				}
			}
		})
	}
}

// simulateTwice runs a seed, and some seeds again: same packets, same answer.
func simulateTwice(seed uint64) error {
	first, err := simulate(seed)
	if err != nil || seed%16 != 1 {
		return err
	}
	second, err := simulate(seed)
	if err != nil {
		return fmt.Errorf("at the second time: %w", err)
	}
	if first != second {
		return fmt.Errorf("two answers:\n%s\n%s", first, second)
	}
	return nil
}

// simulate runs one seed. The answer is all that the engine said.
func simulate(seed uint64) (answer string, err error) {
	s := newScenario(rand.New(rand.NewPCG(seed, 0x5e11)))
	s.traffic()
	s.damage()
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\nin %v", err, s)
		}
	}()
	return newOracle(s).run(seed)
}
