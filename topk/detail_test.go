package topk

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSplitsOfAKeyAreExactWhileItIsFollowed(t *testing.T) {
	type splits struct {
		reads, writes, request, reply uint64
		commands                      map[uint16]uint64
	}
	for _, counter := range []bool{false, true} {
		t.Run(fmt.Sprintf("counter %v", counter), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 51))
			d, c := New(Config{Seed: 1, Top: 200}), NewCounter(Config{Seed: 1, Top: 200})
			want := map[string]*splits{}
			for i := range int64(20_000) {
				key := fmt.Sprintf("k%d", rng.IntN(150))
				a := Access{
					T: t0 + i*2_900_000, Key: []byte(key), Command: uint16(rng.IntN(5)),
					Write: rng.IntN(3) == 0, Bytes: rng.Int64N(500),
				}
				a.Read = !a.Write
				a.Client[15] = byte(rng.IntN(3))
				reply := rng.Int64N(5000)
				if counter {
					c.AddReply(c.Add(&a), reply, false)
				} else {
					d.AddReply(d.Add(&a), reply, false)
				}
				w := want[key]
				if w == nil {
					w = &splits{commands: map[uint16]uint64{}}
					want[key] = w
				}
				if a.Write {
					w.writes++
				} else {
					w.reads++
				}
				w.request += uint64(a.Bytes)
				w.reply += uint64(reply)
				w.commands[a.Command]++
			}
			s := d.Snapshot()
			if counter {
				s = c.Snapshot()
			}
			if len(s.Keys) != len(want) {
				t.Fatalf("%d keys; want %d", len(s.Keys), len(want))
			}
			for i := range s.Keys {
				k := &s.Keys[i]
				w := want[string(k.Key)]
				if k.Reads != w.reads || k.Writes != w.writes || k.RequestBytes != w.request || k.ReplyBytes != w.reply || k.Extrapolated || !k.Detailed {
					t.Errorf("%s: %d reads %d writes %d + %d bytes (%v, %v); want %+v", k.Key, k.Reads, k.Writes, k.RequestBytes, k.ReplyBytes, k.Detailed, k.Extrapolated, *w)
				}
				for _, got := range k.Commands {
					if got.Count != w.commands[got.Command] {
						t.Errorf("%s: command %d %d times; want %d", k.Key, got.Command, got.Count, w.commands[got.Command])
					}
				}
				if k.Clients != 3 {
					t.Errorf("%s: %d clients; want 3", k.Key, k.Clients)
				}
			}
		})
	}
}

func TestSplitsFollowTheWindow(t *testing.T) {
	d := New(Config{Seed: 1})
	// Writes only for 100 s, then reads only for 100 s: the window has no writes.
	for i := range int64(20_000) {
		d.Add(&Access{T: t0 + i*1e7, Key: []byte("k"), Write: i < 10_000, Command: 1 + uint16(i/10_000), Bytes: 100})
		if i == 13_000 { // 30 s after the change
			k := keyOf(t, d.Snapshot(), "k")
			if ratio := float64(k.Writes) / float64(k.Accesses); ratio < 0.47 || ratio > 0.53 {
				t.Errorf("half the window after the change %.3f are writes; want 0.5", ratio)
			}
		}
	}
	k := keyOf(t, d.Snapshot(), "k")
	if k.Writes != 0 || k.Reads != k.Accesses || k.RequestBytes != 100*k.Accesses || len(k.Commands) != 1 {
		t.Errorf("%d writes, %d of %d reads, %d bytes, commands %v; want reads only", k.Writes, k.Reads, k.Accesses, k.RequestBytes, k.Commands)
	}
}

func TestARisingKeyGetsDetailsBeforeItIsHot(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 52))
	f := newFeeder(Config{})
	step := t0 + 20*second
	f.a.Write = true
	f.stream(rng, t0, step+10*second, 20_000, func(t int64) float64 {
		if t < step {
			return 0
		}
		return 0.2
	})
	k := keyOf(t, f.d.Snapshot(), "key:1")
	if k.State != StateHot || !k.Detailed || k.Writes != k.Accesses || k.RequestBytes < 35*k.Accesses || k.RequestBytes > 45*k.Accesses {
		t.Errorf("state %s, %d of %d writes, %d bytes; want hot, all writes, 40 bytes each", k.State, k.Writes, k.Accesses, k.RequestBytes)
	}
	if len(k.Commands) != 1 || k.Commands[0].Count != k.Accesses {
		t.Errorf("commands %v; want one with %d", k.Commands, k.Accesses)
	}
}

func TestMoreThanSixteenCommandsAreOthers(t *testing.T) {
	d, c := New(Config{Seed: 1}), NewCounter(Config{Seed: 1})
	for i := range 200 {
		a := Access{T: t0 + int64(i), Key: []byte("k"), Command: uint16(i % 20), Read: true}
		d.Add(&a)
		c.Add(&a)
	}
	for _, s := range []*Snapshot{d.Snapshot(), c.Snapshot()} {
		if k := &s.Keys[0]; len(k.Commands) != maxCommands || k.OtherCommands != 40 {
			t.Errorf("%d commands, %d others; want 16 and 40", len(k.Commands), k.OtherCommands)
		}
	}
}

func client(n uint32) (a [16]byte) {
	a[10], a[11] = 0xff, 0xff
	binary.BigEndian.PutUint32(a[12:], 0x0a000000+n)
	return a
}

func TestDistinctClients(t *testing.T) {
	for _, clients := range []int{1, 2, 4, 8, 9, 40, 372, 1000, 10_000, 40_000} {
		d, c := New(Config{Seed: 1}), NewCounter(Config{Seed: 1})
		rng := rand.New(rand.NewPCG(uint64(clients), 53))
		for i := range max(4*clients, 1000) {
			n := uint32(i)
			if i >= clients {
				n = rng.Uint32N(uint32(clients))
			}
			a := Access{T: t0 + int64(i)*100_000, Key: []byte("k"), Read: true, Client: client(n % uint32(clients))}
			d.Add(&a)
			c.Add(&a)
		}
		for i, s := range []*Snapshot{d.Snapshot(), c.Snapshot()} {
			got, bound := s.Keys[0].Clients, 0.05*float64(clients)
			if clients == 9 || clients == 40 {
				bound = 1 // two of them may share a bit
			}
			if math.Abs(float64(got-clients)) > bound {
				t.Errorf("view %d: %d clients; want %d within 5 %%", i, got, clients)
			}
		}
	}
}

func TestHeaviestClient(t *testing.T) {
	for _, others := range []uint32{1, 5, 100, 5000} {
		d, c := New(Config{Seed: 1}), NewCounter(Config{Seed: 1})
		rng := rand.New(rand.NewPCG(uint64(others), 54))
		for i := range 50_000 {
			n := 1 + rng.Uint32N(others)
			if rng.Float64() < 0.4 {
				n = 0
			}
			a := Access{T: t0 + int64(i)*1_000_000, Key: []byte("k"), Read: true, Client: client(n)}
			d.Add(&a)
			c.Add(&a)
		}
		for i, s := range []*Snapshot{d.Snapshot(), c.Snapshot()} {
			k := &s.Keys[0]
			want, who := 0.4, client(0)
			if others == 1 {
				want, who = 0.6, client(1)
			}
			if k.TopClient != who || math.Abs(k.TopClientShare-want) > 0.02 {
				t.Errorf("view %d, %d others: %v with %.3f; want %v with %v", i, others, k.TopClient[12:], k.TopClientShare, who[12:], want)
			}
		}
	}
}

func TestClientsForgetAfterTwoWindows(t *testing.T) {
	d := New(Config{Seed: 1})
	for i := range int64(3000) {
		n := uint32(i % 50)
		if i >= 1000 {
			n = 7
		}
		d.Add(&Access{T: t0 + i*1e8, Key: []byte("k"), Read: true, Client: client(n)})
	}
	if k := keyOf(t, d.Snapshot(), "k"); k.Clients != 1 || k.TopClientShare != 1 {
		t.Errorf("%d clients, heaviest %.2f after 200 s of one client; want 1 and 1", k.Clients, k.TopClientShare)
	}
}

func TestReplyBytes(t *testing.T) {
	d := New(Config{Seed: 1})
	var old Handle
	for i, size := range []int64{100, 10_000, 1_000_000} {
		key := fmt.Appendf(nil, "v%d", i)
		for j := range int64(100) {
			h := d.Add(&Access{T: t0 + j*1e7, Key: key, Read: true, Bytes: 30})
			d.AddReply(h, size+11, size == 10_000)
			old = h
		}
		k := keyOf(t, d.Snapshot(), string(key))
		if k.ReplyBytes != uint64(100*(size+11)) || k.ReplyBytesEstimated != (size == 10_000) {
			t.Errorf("%s: %d reply bytes, estimated %v; want %d", key, k.ReplyBytes, k.ReplyBytesEstimated, 100*(size+11))
		}
	}
	s := d.Snapshot()
	if k := keyOf(t, s, "v2"); math.Abs(k.BytesShare-0.99) > 0.01 {
		t.Errorf("byte share %v; want 0.99", k.BytesShare)
	}
	before := s.ReplyBytes
	d.AddReply(0, 50, false)
	d.AddReply(old, -5, false)
	d.AddReply(old^1, 50, false) // another generation
	d.AddReply(Handle(^uint32(0)), 50, false)
	s = d.Snapshot()
	if k := keyOf(t, s, "v2"); k.ReplyBytes != 100*1_000_011 || s.ReplyBytes != before+100 {
		t.Errorf("stale handles changed the key to %d, the port by %d; want unchanged and 100", k.ReplyBytes, s.ReplyBytes-before)
	}
}

func TestAByteHeavyKeyOutsideTheTopGetsDetails(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 55))
	rules, err := CompileRules([]Rule{{Name: "big", Match: MatchPrefix, Pattern: "big", BytesShare: 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	d := New(Config{Seed: 1, Rules: rules})
	// 400 keys take 0.25 % each; the big one 0.05 % of the accesses and most bytes.
	for i := range int64(400_000) {
		key, reply := fmt.Appendf(nil, "k%d", rng.IntN(400)), int64(50)
		if i%2000 == 0 {
			key, reply = []byte("big:report"), 1_000_000
		}
		d.AddReply(d.Add(&Access{T: t0 + i*100_000, Key: key, Read: true, Bytes: 30}), reply, false)
	}
	k := keyOf(t, d.Snapshot(), "big:report")
	if k.State != StateHot || k.Cause != CauseBytes || k.BytesShare < 0.8 {
		t.Errorf("state %s by %s, byte share %.2f; want hot by bytes", k.State, k.Cause, k.BytesShare)
	}
}

func TestDistinctKeysOfTheWindow(t *testing.T) {
	counts := []int{100, 3000, 100_000, 10_000_000}
	if raceEnabled || testing.Short() {
		counts = counts[:3]
	}
	for _, n := range counts {
		d := New(Config{Seed: 1})
		c := NewCounter(Config{Seed: 1, MaxKeys: 10_000})
		key := make([]byte, 10)
		step := 50 * second / int64(n)
		for i := range n {
			binary.LittleEndian.PutUint64(key, uint64(i))
			a := Access{T: t0 + int64(i)*step, Key: key, Read: true}
			d.Add(&a)
			c.Add(&a)
		}
		for i, s := range []*Snapshot{d.Snapshot(), c.Snapshot()} {
			if math.Abs(float64(s.Distinct)-float64(n)) > 0.02*float64(n) {
				t.Errorf("view %d: %d distinct keys; want %d within 2 %%", i, s.Distinct, n)
			}
			if s.DistinctExact && s.Distinct != uint64(n) {
				t.Errorf("view %d: exact but %d of %d", i, s.Distinct, n)
			}
		}
	}
}

func TestDistinctKeysFollowTheWindowAndIgnoreSampling(t *testing.T) {
	// One-time keys at a steady rate for three windows: the estimate must be that
	// of one window, at any phase of the sketches, and event sampling must not
	// change it.
	d := New(Config{Seed: 1})
	d.SetEventSampleEvery(50)
	const rate = 20_000
	key := make([]byte, 8)
	for i := range int64(180 * rate) {
		binary.LittleEndian.PutUint64(key, uint64(i))
		d.Add(&Access{T: t0 + i*second/rate, Key: key, Read: true})
		if i > 100*rate && i%(7*rate) == 0 {
			s := d.Snapshot()
			want := float64(s.T-s.From) / 1e9 * rate
			if math.Abs(float64(s.Distinct)-want) > 0.03*want {
				t.Errorf("after %d s: %d distinct keys; want %.0f within 3 %%", i/rate, s.Distinct, want)
			}
		}
	}
}

func TestHistoryHasTheCountOfEverySecond(t *testing.T) {
	d := New(Config{Seed: 1})
	var want []uint32
	for s := range 70 {
		n := 1 + s%7
		want = append(want, uint32(n))
		for range n {
			d.Add(&Access{T: t0 + int64(s)*second + 10, Key: []byte("k"), Read: true})
		}
	}
	if got := keyOf(t, d.Snapshot(), "k").History; !slices.Equal(got, want[10:]) {
		t.Errorf("history %v; want %v", got, want[10:])
	}
}

// TestFewerDetailsGoToTheKeysThatLead: a port that shares the memory with many
// follows fewer keys, and those are the ones at the top.
func TestFewerDetailsGoToTheKeysThatLead(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 52))
	d := New(Config{Seed: 1, MaxDetails: 60})
	for i := range int64(200_000) {
		key := fmt.Sprintf("rare%d", rng.IntN(2000))
		if i%4 == 0 {
			key = fmt.Sprintf("often%d", rng.IntN(20))
		}
		d.Add(&Access{T: t0 + i*100_000, Key: []byte(key), Read: true, Bytes: 30})
		if n := len(d.details); n > 50 {
			t.Fatalf("%d keys are followed; want at most 50", n)
		}
	}
	d.Advance(t0 + 21e9)
	for _, k := range d.Snapshot().Keys[:20] {
		if !k.Detailed || k.Key[0] != 'o' {
			t.Errorf("%s leads, followed: %v", k.Key, k.Detailed)
		}
	}
}
