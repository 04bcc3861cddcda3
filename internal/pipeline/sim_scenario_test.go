package pipeline

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// scenario is what one run is about, all of it drawn from the seed. Times in
// it are nanoseconds of virtual time, from 0.
type scenario struct {
	rng   *rand.Rand
	ports []uint16
	keys  [][]byte
	end   int64

	whole  bool // count the input as one window
	oneWay bool // the capture has only what clients send
	idle   bool // a live source: it says when nothing comes

	// The keys: one with a share of its own for some time, the others by a law.
	hotKey          int
	hotShare        float64
	hotFrom, hotTo  int64
	law             *rand.Zipf // nil: uniform
	clients         int
	gap             float64 // mean time between two turns of a client
	fake            bool    // values hold the text of requests
	pieces, restart float64 // chance of a turn to be cut up, of a connection to end behind it

	// The damage.
	loss, swap, copies float64
	snap               int // bytes captured of a frame, 0: all
	head               int // packets missing at the start
	jumpAt, jump       int64
	reconnect          bool // no connection lives across a jump ahead
	jitter             int64

	conns  []*simConn
	events []simPacket
}

// simEpoch is the packet time at virtual time 0.
const simEpoch = int64(1_700_000_000_123_456_789)

func newScenario(rng *rand.Rand) *scenario {
	s := &scenario{rng: rng, ports: []uint16{6379}}
	if rng.IntN(3) == 0 {
		s.ports = []uint16{6379, 6380, 7000}
	}
	s.end = int64(10+rng.IntN(20)) * 1e9
	if rng.IntN(8) == 0 {
		s.end = int64(60+rng.IntN(120)) * 1e9
	}
	s.whole, s.oneWay, s.idle = rng.IntN(3) == 0, rng.IntN(2) == 0, rng.IntN(2) == 0
	s.drawKeys()
	s.clients = 1 + rng.IntN(12)
	turns := float64(100 + rng.IntN(900))
	s.gap = float64(s.end) * float64(s.clients) / turns
	s.fake = rng.IntN(2) == 0
	s.pieces = []float64{0, 0.02, 0.3}[rng.IntN(3)]
	s.restart = []float64{0, 0.01, 0.1}[rng.IntN(3)]
	s.drawDamage()
	return s
}

func (s *scenario) drawKeys() {
	rng := s.rng
	n := []int{5, 40, 400, 3000}[rng.IntN(4)]
	for i := range n {
		s.keys = append(s.keys, fmt.Appendf(nil, "key:%d", i))
	}
	switch rng.IntN(4) {
	case 0:
		s.keys[3] = bytes.Repeat([]byte("long"), 300+rng.IntN(100))
	case 1:
		s.keys[2] = []byte("\x00\xff*3\r\n$")
		s.keys[3] = []byte{}
	}
	if rng.IntN(2) == 0 {
		s.law = rand.NewZipf(rng, 1.05+rng.Float64(), 1, uint64(n-1))
	}
	s.hotKey = rng.IntN(n)
	if rng.IntN(2) == 0 {
		s.hotShare = 0.02 + 0.4*rng.Float64()
		s.hotFrom = rng.Int64N(s.end)
		s.hotTo = s.hotFrom + rng.Int64N(s.end)
	}
}

func (s *scenario) drawDamage() {
	rng := s.rng
	if rng.IntN(3) == 0 {
		s.swap = 0.1 * rng.Float64()
	}
	if rng.IntN(3) == 0 {
		s.copies = 0.1 * rng.Float64()
	}
	s.jumpAt = s.end * int64(2+rng.IntN(6)) / 10
	switch rng.IntN(6) {
	case 0:
		s.jump = int64(time.Hour)
	case 1:
		s.jump = -int64(time.Hour)
	}
	s.reconnect = rng.IntN(3) > 0
	if rng.IntN(4) == 0 {
		s.jitter = 2e6
	}
	if rng.IntN(5) < 2 {
		return // nothing is missing
	}
	s.loss = []float64{0, 0.001, 0.01, 0.05}[rng.IntN(4)]
	if rng.IntN(5) == 0 {
		s.snap = 80 + rng.IntN(400)
	}
	if rng.IntN(3) == 0 {
		s.head = 1 + rng.IntN(300)
		if rng.IntN(2) == 0 {
			s.loss = 0
		}
	}
}

// pick draws the key of an access at time t.
func (s *scenario) pick(t int64) int {
	if s.hotShare > 0 {
		share := 0.003
		if t >= s.hotFrom && t < s.hotTo {
			share = s.hotShare
		}
		if s.rng.Float64() < share {
			return s.hotKey
		}
	}
	if s.law != nil {
		return int(s.law.Uint64())
	}
	return s.rng.IntN(len(s.keys))
}

// exact reports whether every request can be counted: nothing is missing and
// every connection is seen from its start.
func (s *scenario) exact() bool {
	return s.loss == 0 && s.snap == 0 && s.head == 0 && (s.jump <= 0 || s.reconnect)
}

func (s *scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d packets of %d connections, %d keys, %d s; whole %v, one way %v, idle %v, ports %v\n",
		len(s.events), len(s.conns), len(s.keys), s.end/1e9, s.whole, s.oneWay, s.idle, s.ports)
	fmt.Fprintf(&b, "hot key %d share %.3f from %d to %d s, fake %v, pieces %v, restart %v\n",
		s.hotKey, s.hotShare, s.hotFrom/1e9, s.hotTo/1e9, s.fake, s.pieces, s.restart)
	fmt.Fprintf(&b, "loss %v, swap %.3f, copies %.3f, snap %d, head %d, jump %d s at %d s, reconnect %v, jitter %v",
		s.loss, s.swap, s.copies, s.snap, s.head, s.jump/1e9, s.jumpAt/1e9, s.reconnect, s.jitter)
	return b.String()
}
