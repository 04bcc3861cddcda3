package capture

import (
	"fmt"
	"math"
	"math/bits"
)

// bpfInstruction is one instruction of classic BPF.
type bpfInstruction struct {
	code   uint16
	jt, jf uint8
	k      uint32
}

// What the sampling prefix needs of classic BPF (linux/filter.h).
const (
	bpfLoadWord   = 0x20             // BPF_LD | BPF_W | BPF_ABS
	bpfJumpIfSet  = 0x45             // BPF_JMP | BPF_JSET | BPF_K
	bpfReturn     = 0x06             // BPF_RET | BPF_K
	bpfRandomWord = 0xffff_f000 + 56 // SKF_AD_OFF + SKF_AD_RANDOM: 32 fresh random bits
	maxBPF        = 4096             // BPF_MAXINSNS
)

// sampledProgram returns program behind a prefix that keeps 1 packet in n, a
// power of two. The draw comes first: a packet that is not kept does not even
// pay for the filter, which is the larger part of what it would cost.
//
// Connection starts and ends are thinned out like data, on purpose. Were SYN,
// FIN and RST let through, a SYN flood would reach the reader in full exactly
// when sampling ought to protect it; and data that comes with a FIN would be
// kept n times as often as its SampleEvery says. Nothing is lost by it: sampled
// packets are decoded one by one, without a connection that begins and ends, and
// flows whose FIN was not kept go by idle time or by the cap of the table.
func sampledProgram(program []bpfInstruction, n int) []bpfInstruction {
	if n <= 1 {
		return program
	}
	prefix := []bpfInstruction{
		{code: bpfLoadWord, k: bpfRandomWord},
		{code: bpfJumpIfSet, jf: 1, k: uint32(n - 1)}, // any of the low bits: to the next, else over it
		{code: bpfReturn, k: 0},
	}
	return append(prefix, program...) // jumps are relative
}

// checkSampleEvery returns an error unless n is 1, 2, 4 ... MaxSampleEvery.
func checkSampleEvery(n int) error {
	if n < 1 || n > MaxSampleEvery || bits.OnesCount(uint(n)) != 1 {
		return fmt.Errorf("sample 1 packet in %d: want a power of two from 1 to %d", n, MaxSampleEvery)
	}
	return nil
}

// maxSampleChanges bounds the entries, two a change, that packets in the ring
// have still to pass. A controller changes once a second and the ring holds
// packets back for one read timeout; beyond it SetSampleEvery refuses.
const maxSampleChanges = 256

// sampleHistory tells which sampling a packet was taken under. The kernel
// changes its filter at once, while up to a ring of packets still waits that
// came through the old one; the packet's time tells them apart.
//
// When exactly the kernel changed is known only to lie within the system call,
// some hundred microseconds, more when the reader is preempted. Packets of that
// span carry the smaller of the two numbers: they may stand for too few
// packets, never for too many, and what that makes up is no more than what
// passed in the span. The larger one could blow up a handful of packets a
// thousandfold and make a hot key of nothing.
type sampleHistory struct {
	every   int            // of packets before next
	next    int64          // when the first of changes took place; never when there is none
	changes []sampleChange // not passed yet, in order of time
}

type sampleChange struct {
	t     int64 // nanoseconds since the epoch
	every int
}

func newSampleHistory() sampleHistory { return sampleHistory{every: 1, next: math.MaxInt64} }

func (h *sampleHistory) full() bool { return len(h.changes)+2 > maxSampleChanges }

// latest is the sampling that is in force now.
func (h *sampleHistory) latest() int {
	if n := len(h.changes); n > 0 {
		return h.changes[n-1].every
	}
	return h.every
}

// changed notes that the kernel changed the sampling between from and to. The
// history must not be full.
func (h *sampleHistory) changed(from, to int64, every int) {
	h.add(from, min(h.latest(), every))
	h.add(to, every)
}

func (h *sampleHistory) add(t int64, every int) {
	if n := len(h.changes); n > 0 {
		t = max(t, h.changes[n-1].t) // the clock was set back
	}
	h.changes = append(h.changes, sampleChange{t, every})
	h.next = h.changes[0].t
}

// pass makes every change up to t the past. Packets come in order of time but
// for the few that two processors put into the ring at once.
func (h *sampleHistory) pass(t int64) {
	passed := 0
	for passed < len(h.changes) && h.changes[passed].t <= t {
		h.every = h.changes[passed].every
		passed++
	}
	h.changes = append(h.changes[:0], h.changes[passed:]...)
	h.next = math.MaxInt64
	if len(h.changes) > 0 {
		h.next = h.changes[0].t
	}
}

// settle is for an idle source: packets of before now-wait are not waiting any
// more, so changes of that time are passed, and so are those that lie in the
// future because the clock was set back.
func (h *sampleHistory) settle(now, wait int64) {
	if h.next == math.MaxInt64 {
		return
	}
	if last := h.changes[len(h.changes)-1].t; last > now {
		h.pass(math.MaxInt64 - 1)
		return
	}
	h.pass(now - wait)
}
