package hotlist

import (
	"container/list"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
)

// The mix of the replay: one key of weight 560, nine of 25, 1,331 of 1.
const (
	replayReads     = 20_000
	replayInstances = 10
	replayListed    = 10 // the keys that weigh more than 1
	replayL1        = 16 // entries of each instance
	replayL2        = 64 // entries that all share
	replayCold      = 1331

	// replaySeed gives the draw on which caches of the usual kind do as they
	// did in the replay from which the targets come: 5,287 reads of the
	// hottest key, served 29.5 / 7.5 / 63.0 % by L1, L2 and origin. That is a
	// draw with many listed keys, 37.6 % of the reads.
	replaySeed = 6442

	// Of all draws the targets are out of reach of any L1 that holds listed
	// keys only. The listed keys are 785 of 2,116, so 37.10 % of the reads;
	// each of ten instances has to load each of ten keys once, which is
	// 0.5 points of 20,000 reads: 36.60 % is left for L1. The other 62.90 %
	// are spread evenly over 1,331 keys, of which an L2 of 64 entries holds
	// 4.8 % at best, whatever its policy: the origin gets 59.88 % at least.
	// With LRU, which also keeps what L1 has just loaded, it gets 60.2 %.
	replayDraws = 40
	meanL1      = 36.60 // expected
	leastOrigin = 59.88 // of any policy of L2
	mostOrigin  = 60.35 // with LRU, and some room
	// meanNoise is four standard errors of a mean over replayDraws draws of
	// a share of 0.37 of 20,000 reads: 4 * 0.34 / sqrt(40).
	meanNoise = 0.22
)

func replayKey(rnd *rand.Rand) string {
	switch n := rnd.IntN(560 + 9*25 + replayCold); {
	case n < 560:
		return "listed:0"
	case n < 560+9*25:
		return fmt.Sprint("listed:", 1+(n-560)/25)
	default:
		return fmt.Sprint("cold:", n-560-9*25)
	}
}

// lru is a cache of the usual kind: it admits whatever is read.
type lru struct {
	size  int
	order list.List
	items map[string]*list.Element
}

func newLRU(size int) *lru { return &lru{size: size, items: make(map[string]*list.Element)} }

// read reports whether key was there, and puts it in front.
func (c *lru) read(key string) bool {
	if e, ok := c.items[key]; ok {
		c.order.MoveToFront(e)
		return true
	}
	c.items[key] = c.order.PushFront(key)
	if c.order.Len() > c.size {
		e := c.order.Back()
		delete(c.items, c.order.Remove(e).(string))
	}
	return false
}

// replayed counts who served the reads.
type replayed struct {
	l1, l2, origin  int
	listed, hottest int // reads of listed keys, of the hottest
	hottestBeyond   int // reads of the hottest that L1 did not serve
	listedBeyond    int
}

// behind is what the L1 of an instance reads from: the cache that all share,
// then the origin.
func (r *replayed) behind(shared *lru, key string) {
	if shared.read(key) {
		r.l2++
	} else {
		r.origin++
	}
	switch {
	case key == "listed:0":
		r.hottestBeyond++
		r.listedBeyond++
	case key[0] == 'l':
		r.listedBeyond++
	}
}

func (r *replayed) draw(rnd *rand.Rand) (instance int, key string) {
	key = replayKey(rnd)
	if key[0] == 'l' {
		r.listed++
	}
	if key == "listed:0" {
		r.hottest++
	}
	return rnd.IntN(replayInstances), key
}

func share(n int) float64 { return 100 * float64(n) / replayReads }

func (r *replayed) String() string {
	return fmt.Sprintf("L1 %.2f %%, L2 %.2f %%, origin %.2f %%; %d of %d reads of the hottest key and %d of %d of listed keys went past L1",
		share(r.l1), share(r.l2), share(r.origin), r.hottestBeyond, r.hottest, r.listedBeyond, r.listed)
}

// replay reads the mix through the Cache of this package.
func replay(t *testing.T, seed uint64) (r replayed) {
	synctest.Test(t, func(t *testing.T) { // all within the life of one copy
		var entries []Entry
		for i := range replayListed {
			entries = append(entries, hotKey(fmt.Sprint("listed:", i)))
		}
		w := newFake(entries...)
		shared := newLRU(replayL2)
		load := func(_ context.Context, key string) (string, error) {
			r.behind(shared, key)
			return "v", nil
		}
		var instances [replayInstances]*Cache[string]
		for i := range instances {
			instances[i] = NewCache(w.Watcher, load, CacheConfig[string]{MaxEntries: replayL1})
			defer instances[i].Close()
		}
		rnd := rand.New(rand.NewPCG(seed, 11))
		for range replayReads {
			i, key := r.draw(rnd)
			if _, err := instances[i].Get(context.Background(), key); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range instances {
			r.l1 += int(c.Stats().Hits)
		}
	})
	return r
}

// usual reads the same through caches that admit everything.
func usual(seed uint64) (r replayed) {
	shared := newLRU(replayL2)
	var instances [replayInstances]*lru
	for i := range instances {
		instances[i] = newLRU(replayL1)
	}
	rnd := rand.New(rand.NewPCG(seed, 11))
	for range replayReads {
		i, key := r.draw(rnd)
		if instances[i].read(key) {
			r.l1++
		} else {
			r.behind(shared, key)
		}
	}
	return r
}

// TestReplay, on the draw that the targets are for: an L1 that holds listed keys only serves more with the same
// entries than one that holds what was read last, and keeps nearly every read
// of the hottest key off Redis.
func TestReplay(t *testing.T) {
	r, lru := replay(t, replaySeed), usual(replaySeed)
	t.Log("listed keys:", r.String())
	t.Log("everything: ", lru.String())
	if r.hottest != 5287 || math.Abs(share(lru.l1)-29.5) > 0.1 || math.Abs(share(lru.l2)-7.5) > 0.1 || math.Abs(share(lru.origin)-63) > 0.1 {
		t.Error("this is not the draw that the targets are for")
	}
	if share(r.l1) < 37 || share(r.origin) > 59.7 {
		t.Errorf("L1 served %.2f %%, origin %.2f %%; want at least 37 and at most 59.7", share(r.l1), share(r.origin))
	}
	if r.hottestBeyond > 10 {
		t.Errorf("%d reads of the hottest key reached Redis; want at most 10", r.hottestBeyond)
	}
}

// TestReplayOnAverage holds what is true of any draw, and the means over many,
// which the constants above derive. The draws are fixed; so is the result.
func TestReplayOnAverage(t *testing.T) {
	var l1, l2, origin, usualL1, usualOrigin float64
	for seed := range uint64(replayDraws) {
		r, lru := replay(t, seed), usual(seed)
		// Each instance loads each listed key once, and no more.
		if r.listedBeyond > replayListed*replayInstances || r.hottestBeyond > replayInstances || r.l1 != r.listed-r.listedBeyond {
			t.Errorf("seed %d: %s", seed, r.String())
		}
		if share(r.l1) < share(lru.l1)+6 || share(r.origin) > share(lru.origin)-2 {
			t.Errorf("seed %d: %s; without a list %s", seed, r.String(), lru.String())
		}
		l1, l2, origin = l1+share(r.l1)/replayDraws, l2+share(r.l2)/replayDraws, origin+share(r.origin)/replayDraws
		usualL1, usualOrigin = usualL1+share(lru.l1)/replayDraws, usualOrigin+share(lru.origin)/replayDraws
	}
	t.Logf("means of %d draws: L1 %.2f %%, L2 %.2f %%, origin %.2f %%; without a list L1 %.2f %%, origin %.2f %%",
		replayDraws, l1, l2, origin, usualL1, usualOrigin)
	if math.Abs(l1-meanL1) > meanNoise {
		t.Errorf("L1 serves %.2f %% on average; want %.2f", l1, meanL1)
	}
	if l1 < usualL1+7 || origin > usualOrigin-3 {
		t.Errorf("the list saves too little: L1 %.2f after %.2f %%, origin %.2f after %.2f %%", l1, usualL1, origin, usualOrigin)
	}
	if origin > mostOrigin || origin < leastOrigin-meanNoise {
		t.Errorf("origin serves %.2f %% on average; want %.2f to %.2f", origin, leastOrigin, mostOrigin)
	}
}
