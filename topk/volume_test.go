package topk

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
	"unsafe"
)

const volumeTop = 64 // ranks the oracle counts; the true top 20 are among them

// volume streams accesses at 1,000,000 a second of virtual time over 10^8 keys
// into an unsampled and a sampled Detector.
type volume struct {
	full, sampled *Detector
	oracle        [60][volumeTop]uint32
	all           [60]uint32
	column        int
	slice         uint32
}

func (v *volume) run(seconds int, s float64, scan bool) {
	rng := rand.New(rand.NewPCG(11, uint64(s*10)))
	z := newZipf(rng, 1e8, s)
	key := make([]byte, 8)
	a := Access{Key: key, Command: 1, Read: true, Bytes: 40}
	unique := uint64(1) << 40
	for i := range int64(seconds) * 1_000_000 {
		a.T = t0 + i*1000
		id := uint64(0)
		if scan && i&1 == 1 {
			unique++
			id = unique
		} else {
			id = z.next()
		}
		binary.LittleEndian.PutUint64(key, id*0x9e3779b97f4a7c15)
		v.full.Add(&a)
		v.sampled.Add(&a)
		v.count(id)
	}
}

// count is the oracle; its columns follow the seconds of the full Detector.
func (v *volume) count(id uint64) {
	if s := v.full.win.slice / slicesPerSec; s != v.slice {
		v.slice = s
		v.column = (v.column + 1) % 60
		v.oracle[v.column] = [volumeTop]uint32{}
		v.all[v.column] = 0
	}
	v.all[v.column]++
	if id <= volumeTop {
		v.oracle[v.column][id-1]++
	}
}

// truth returns the ids of the window's true top, largest first, their counts
// and all accesses.
func (v *volume) truth() (top []uint64, counts map[uint64]uint64, all uint64) {
	counts = map[uint64]uint64{}
	for c := range v.oracle {
		all += uint64(v.all[c])
		for i, n := range v.oracle[c] {
			counts[uint64(i+1)] += uint64(n)
		}
	}
	for id := range counts {
		top = append(top, id)
	}
	slices.SortFunc(top, func(a, b uint64) int { return int(counts[b]) - int(counts[a]) })
	return top, counts, all
}

func volumeID(k *KeyStat) uint64 {
	const inverse = 0xf1de83e19937733d // of 0x9e3779b97f4a7c15 modulo 2^64
	return binary.LittleEndian.Uint64(k.Key) * inverse
}

// TestVolume needs about ten seconds a case on a quiet core. HOTSNIFF_VOLUME_SECONDS
// shortens the stream; the window is full from 60 on.
func TestVolume(t *testing.T) {
	if raceEnabled {
		t.Skip("skipped under the race detector: ten times slower, and there is one goroutine")
	}
	if testing.Short() {
		t.Skip("skipped with -short: streams 450 million accesses")
	}
	seconds := 75
	if v, err := strconv.Atoi(os.Getenv("HOTSNIFF_VOLUME_SECONDS")); err == nil {
		seconds = v
	}
	for _, scan := range []bool{false, true} {
		for _, s := range []float64{0.8, 1.0, 1.2} {
			t.Run(fmt.Sprintf("zipf %.1f scan %v", s, scan), func(t *testing.T) {
				t.Parallel()
				v := &volume{full: New(Config{Seed: 3, Top: 100}), sampled: New(Config{Seed: 4, Top: 100})}
				v.sampled.SetEventSampleEvery(100)
				v.run(seconds, s, scan)
				v.check(t, scan)
			})
		}
	}
}

func (v *volume) check(t *testing.T, scan bool) {
	top, counts, all := v.truth()
	snap := v.full.Snapshot()
	if snap.Accesses != all {
		t.Fatalf("accesses %d; want %d", snap.Accesses, all)
	}
	worst := 0.0
	for i := range snap.Keys {
		k := &snap.Keys[i]
		id := volumeID(k)
		want := float64(counts[id]) / float64(all)
		if id > volumeTop {
			want = k.Share // not counted by the oracle: a key of the far tail
		}
		worst = max(worst, math.Abs(k.Share-want))
		if k.Share >= 0.02 && want < 0.02 || k.State == StateHot && want < 0.02 {
			t.Errorf("key %d: share %v, state %s; true share %v", id, k.Share, k.State, want)
		}
	}
	recall := 0
	for i, id := range top[:20] {
		for j := range snap.Keys[:min(20, len(snap.Keys))] {
			k := &snap.Keys[j]
			if volumeID(k) != id {
				continue
			}
			recall++
			if !scan && (k.Accesses != counts[id] || k.AccessesError != 0) {
				t.Errorf("rank %d: count %d ± %d; want %d", i+1, k.Accesses, k.AccessesError, counts[id])
			}
		}
	}
	if !scan && recall != 20 {
		t.Errorf("recall %d/20", recall)
	}
	if worst > 0.0003 {
		t.Errorf("largest share error %.4f %%; want <= 0.03 %%", worst*100)
	}
	mean := v.sampledError(top[:20], counts)
	if !scan && mean > 0.04 {
		t.Errorf("1/100: mean relative error %.4f; want <= 0.04", mean)
	}
	t.Logf("recall %d/20, largest share error %.5f %%, 1/100 mean relative error %.4f", recall, worst*100, mean)
}

// sampledError is the mean relative error of the counts at 1/100.
func (v *volume) sampledError(top []uint64, counts map[uint64]uint64) float64 {
	got := map[uint64]uint64{}
	snap := v.sampled.Snapshot()
	for i := range snap.Keys {
		got[volumeID(&snap.Keys[i])] = snap.Keys[i].Accesses
	}
	sum := 0.0
	for _, id := range top {
		sum += math.Abs(float64(got[id])-float64(counts[id])) / float64(counts[id])
	}
	return sum / float64(len(top))
}

func TestTableMemoryIsWhatThePackagePromises(t *testing.T) {
	free := keySlots*2 + longSlots
	if n := int(unsafe.Sizeof(table{})) + free; n > 1_600_000 {
		t.Errorf("table takes %d bytes; want <= 1,600,000", n)
	}
	if n := unsafe.Sizeof(meta{}); n != 20 {
		t.Errorf("meta takes %d bytes; want 20", n)
	}
	details := int(unsafe.Sizeof(detail{})) * DefaultMaxDetails
	t.Logf("table %d, details up to %d, sketches %d bytes", int(unsafe.Sizeof(table{}))+free, details, (distinctSlots+1)<<14)
	if details > 800_000 {
		t.Errorf("details take %d bytes; want <= 800,000", details)
	}
}

// heapOf returns the heap growth caused by f, which returns what must stay alive.
func TestMemoryIsFlatInTheNumberOfKeys(t *testing.T) {
	d := New(Config{Seed: 1})
	key := make([]byte, 12)
	a := Access{Key: key, Read: true}
	feed := func(from, n uint64) {
		for i := from; i < from+n; i++ {
			binary.LittleEndian.PutUint64(key, i)
			a.T = t0 + int64(i)*int64(10*time.Microsecond)
			d.Add(&a)
			d.Add(&a)
		}
	}
	feed(0, 10_000)
	if raceEnabled {
		t.Skip("allocations are not counted under the race detector")
	}
	n := uint64(10_000)
	if got := testing.AllocsPerRun(5, func() { feed(n, 50_000); n += 50_000 }); got > 0 {
		t.Errorf("%v allocations for 50,000 new keys; want 0", got)
	}
}
