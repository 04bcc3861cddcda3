package topk

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
)

func TestCounterIsExactUpToMaxKeys(t *testing.T) {
	const keys = 60_000
	c := NewCounter(Config{Seed: 1, MaxKeys: keys})
	rng := rand.New(rand.NewPCG(1, 91))
	want := map[string]uint64{}
	for i := range 400_000 {
		id := i
		if i >= keys {
			id = int(rng.Float64() * rng.Float64() * keys)
		}
		key := fmt.Sprintf("key:%0*d", 1+id%40, id)
		want[key]++
		c.Add(&Access{T: t0 + int64(i), Key: []byte(key), Read: true})
	}
	s := c.SnapshotTop(keys)
	if !s.DistinctExact || s.Distinct != uint64(len(want)) || len(s.Keys) != len(want) {
		t.Fatalf("%d distinct, exact %v, %d keys; want %d", s.Distinct, s.DistinctExact, len(s.Keys), len(want))
	}
	for i := range s.Keys {
		k := &s.Keys[i]
		if k.Accesses != want[string(k.Key)] || k.AccessesError != 0 {
			t.Fatalf("%s: %d ± %d; want %d", k.Key, k.Accesses, k.AccessesError, want[string(k.Key)])
		}
		if i > 0 && CompareKeys(s.Keys[i-1], *k) >= 0 {
			t.Fatalf("%s out of order", k.Key)
		}
	}
}

func TestCounterBoundsItsErrorBeyondMaxKeys(t *testing.T) {
	for _, shape := range []float64{0.7, 1.0, 1.3} {
		c := NewCounter(Config{Seed: 1, Top: 1000, MaxKeys: 5000})
		z := newZipf(rand.New(rand.NewPCG(2, 92)), 1e6, shape)
		want := map[string]uint64{}
		n := 1_000_000
		if raceEnabled {
			n = 100_000
		}
		for i := range n {
			key := fmt.Sprintf("key:%d", z.next())
			want[key]++
			c.Add(&Access{T: t0 + int64(i)*1000, Key: []byte(key), Read: true})
		}
		s := c.Snapshot()
		worst := uint64(0)
		for i := range s.Keys {
			k := &s.Keys[i]
			n := want[string(k.Key)]
			if n < k.Accesses || n > k.Accesses+k.AccessesError {
				t.Errorf("zipf %v, %s: true count %d outside [%d, %d]", shape, k.Key, n, k.Accesses, k.Accesses+k.AccessesError)
			}
			worst = max(worst, k.AccessesError)
		}
		// Space-Saving promises n/keys; the approximate minimum costs a little.
		if bound := uint64(2 * n / 5000); worst > bound {
			t.Errorf("zipf %v: error up to %d; want <= %d", shape, worst, bound)
		}
		if k := &s.Keys[0]; string(k.Key) != "key:1" || k.AccessesError != 0 {
			t.Errorf("zipf %v: top key %s ± %d", shape, k.Key, k.AccessesError)
		}
		t.Logf("zipf %v: error at most %d of %d accesses, %d evictions", shape, worst, n, s.Counters.Evicted)
	}
}

func TestCounterStaysConsistentUnderReplacement(t *testing.T) {
	c := NewCounter(Config{Seed: 1, MaxKeys: 500})
	rng := rand.New(rand.NewPCG(3, 93))
	var last Handle
	for i := range 200_000 {
		key := bytes.Repeat([]byte{byte('a' + i%26)}, 1+rng.IntN(200))
		key = fmt.Appendf(key, "%d", rng.IntN(5000))
		a := Access{T: t0 + int64(i), Key: key, Command: uint16(rng.IntN(3)), Client: client(rng.Uint32N(30))}
		h := c.Add(&a)
		if i%3 == 0 {
			c.AddReply(last, 10, false)
		}
		last = h
	}
	if c.n != 500 {
		t.Fatalf("%d entries; want 500", c.n)
	}
	inUse := 0
	for _, s := range c.index {
		if s != 0 {
			inUse++
		}
	}
	if inUse != c.n {
		t.Errorf("%d index slots in use; want %d", inUse, c.n)
	}
	held := 0
	for i := range c.n {
		e := c.entry(i)
		if c.find(e.hash) != i {
			t.Fatalf("entry %d is not found", i)
		}
		if h := hashKey(c.arena.get(e.key), int64(e.keyLen), c.seed); h != e.hash {
			t.Fatalf("entry %d has the text of another key", i)
		}
		if e.extra != 0 {
			held++
		}
	}
	if free := len(c.extras.free); held+free != len(c.extras.chunks)*extraChunk {
		t.Errorf("%d extras held, %d free of %d", held, free, len(c.extras.chunks)*extraChunk)
	}
}

func TestCounterExtrasGoToTheMostAccessedKeys(t *testing.T) {
	if raceEnabled {
		t.Skip("skipped under the race detector: 700,000 keys")
	}
	c := NewCounter(Config{Seed: 1, Top: 200})
	key := make([]byte, 0, 16)
	add := func(id uint64, n int) {
		key = appendDecimal(append(key[:0], 'k'), id)
		for i := range n {
			c.Add(&Access{T: t0, Key: key, Command: uint16(i % 2), Write: i%2 == 1})
		}
	}
	for i := range uint64(100) {
		add(i, 50)
	}
	for i := range uint64(3 * maxExtras) {
		add(1000+i, 2)
	}
	s := c.Snapshot()
	for i := range s.Keys[:100] {
		k := &s.Keys[i]
		if k.Extrapolated || len(k.Commands) != 2 || k.Commands[0].Count != 25 || k.Writes != 25 {
			t.Fatalf("%s: %v, %d writes, extrapolated %v; want 25 and 25", k.Key, k.Commands, k.Writes, k.Extrapolated)
		}
	}
}

func TestArenaUsesFreedRoomAgainAndStopsAtItsBound(t *testing.T) {
	var a arena
	refs := []keyRef{}
	for i := range 1000 {
		refs = append(refs, a.put(bytes.Repeat([]byte{byte(i)}, i%1025)))
	}
	used := a.used
	for i, r := range refs {
		if got := a.get(r); !bytes.Equal(got, bytes.Repeat([]byte{byte(i)}, i%1025)) {
			t.Fatalf("text %d is %d bytes", i, len(got))
		}
		a.release(r)
	}
	for i := range 1000 {
		a.put(bytes.Repeat([]byte{1}, i%1025))
	}
	if a.used != used {
		t.Errorf("%d units after reuse; want %d", a.used, used)
	}
	a.used = maxKeyArena / arenaUnit // as if full
	if !a.full(100) {
		t.Error("not full at the bound")
	}
	if r := a.put(make([]byte, 100)); r.cap != 0 {
		t.Error("text stored beyond the bound")
	}
}

func TestCounterMemoryAtAMillionKeys(t *testing.T) {
	if raceEnabled || testing.Short() {
		t.Skip("skipped under the race detector and with -short: a million keys")
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c := NewCounter(Config{Seed: 1})
	key := make([]byte, 0, 40)
	for i := range uint64(1_200_000) {
		key = appendDecimal(append(key[:0], "product:detail:view:"...), 1_000_000_000+i)
		c.Add(&Access{T: t0 + int64(i), Key: key, Read: true})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	mb := float64(after.HeapAlloc-before.HeapAlloc) / 1e6
	t.Logf("%.0f MB for 1,000,000 keys of 30 bytes", mb)
	if mb > 180 {
		t.Errorf("%.0f MB; want <= 180", mb)
	}
	if s := c.Snapshot(); s.Distinct < 1_170_000 || s.Distinct > 1_230_000 {
		t.Errorf("%d distinct; want 1,200,000 within 2.5 %%", s.Distinct)
	}
}
