package capture

import "testing"

func TestSampleHistoryByPacketTime(t *testing.T) {
	h := newSampleHistory()
	expect := func(at int64, want int) {
		t.Helper()
		if at >= h.next {
			h.pass(at)
		}
		if h.every != want {
			t.Errorf("packet of time %d: 1 in %d, want 1 in %d", at, h.every, want)
		}
	}
	expect(100, 1)
	h.changed(200, 210, 2)
	h.changed(300, 310, 8)
	h.changed(400, 410, 4)
	if got := h.latest(); got != 4 {
		t.Errorf("in force: %d, want 4", got)
	}
	expect(150, 1) // waited in the ring
	expect(199, 1)
	expect(205, 1) // during the change: the smaller one
	expect(210, 2)
	expect(305, 2)
	expect(399, 8)
	expect(405, 4)
	expect(410, 4)
	expect(350, 4) // another processor was late
	if len(h.changes) != 0 || h.latest() != 4 {
		t.Errorf("changes %v, in force %d", h.changes, h.latest())
	}
}

func TestSampleHistorySettlesWhenIdle(t *testing.T) {
	h := newSampleHistory()
	h.changed(990, 1000, 16)
	h.settle(1050, 100)
	if h.every != 1 {
		t.Error("passed a change while packets of before may wait")
	}
	h.settle(1100, 100)
	if h.every != 16 {
		t.Error("an old change was not passed")
	}
	h.changed(8990, 9000, 4)
	h.settle(2000, 100) // the clock was set back
	if h.every != 4 || h.latest() != 4 || len(h.changes) != 0 {
		t.Errorf("change from the future: %+v", h)
	}
}

func TestSampleHistoryIsBounded(t *testing.T) {
	h := newSampleHistory()
	for i := range int64(maxSampleChanges / 2) {
		if h.full() {
			t.Fatalf("full after %d", i)
		}
		h.changed(i, i, 2)
	}
	if !h.full() || len(h.changes) > maxSampleChanges {
		t.Errorf("not full with %d", len(h.changes))
	}
}

func TestCheckSampleEvery(t *testing.T) {
	for n := -2; n <= 2*MaxSampleEvery; n++ {
		want := false
		for good := 1; good <= MaxSampleEvery; good *= 2 {
			want = want || n == good
		}
		if got := checkSampleEvery(n) == nil; got != want {
			t.Errorf("%d accepted: %v, want %v", n, got, want)
		}
	}
}

func TestSampledProgramKeepsTheRest(t *testing.T) {
	program := []bpfInstruction{{code: 0x28, k: 12}, {code: bpfReturn, k: 99}}
	if got := sampledProgram(program, 1); len(got) != 2 || got[0] != program[0] {
		t.Errorf("1 in 1: %v", got)
	}
	got := sampledProgram(program, 64)
	if len(got) != 5 || got[1].k != 63 || got[3] != program[0] || got[4] != program[1] {
		t.Errorf("1 in 64: %v", got)
	}
}
