package hotlist

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotsniff/hotsniff/hotlist/redistest"
)

// counters is what Redis would hold.
type counters struct {
	mu     sync.Mutex
	n      map[string]int64
	writes int
	down   bool
}

func (c *counters) add(_ context.Context, key string, by int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		return errSource
	}
	c.writes++
	if c.n == nil {
		c.n = make(map[string]int64)
	}
	c.n[key] += by
	return nil
}

// get returns the counter of key and how many writes there were at all.
func (c *counters) get(key string) (n int64, writes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[key], c.writes
}

func (c *counters) setDown(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
}

func aggregateTest(t *testing.T, f func(t *testing.T, w *fakeWatcher, a *Aggregate, c *counters)) {
	synctest.Test(t, func(t *testing.T) {
		c := &counters{}
		w := newFake(Entry{Key: "hot", Action: ActionAggregate}, hotKey("read"))
		a := NewAggregate(w.Watcher, c.add, AggregateConfig{})
		f(t, w, a, c)
		_ = a.Close(context.Background())
	})
}

func TestAggregateTurnsManyIncrementsIntoFew(t *testing.T) {
	aggregateTest(t, func(t *testing.T, w *fakeWatcher, a *Aggregate, c *counters) {
		ctx := context.Background()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				for range 1000 { // for a second
					if err := a.Add(ctx, "hot", 1); err != nil {
						t.Error(err)
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		wg.Wait()
		if err := a.Close(ctx); err != nil {
			t.Error(err)
		}
		if n, writes := c.get("hot"); n != 10000 || writes > 12 {
			t.Errorf("%d after %d writes", n, writes)
		}
		if err := a.Add(ctx, "hot", 1); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestOtherKeysAreWrittenAtOnce(t *testing.T) {
	aggregateTest(t, func(t *testing.T, w *fakeWatcher, a *Aggregate, c *counters) {
		for _, k := range []string{"cold", "read"} {
			err := a.Add(context.Background(), k, 5)
			if n, _ := c.get(k); err != nil || n != 5 {
				t.Errorf("%s: %d, %v", k, n, err)
			}
		}
	})
}

func TestNothingIsLostWhileRedisIsDown(t *testing.T) {
	aggregateTest(t, func(t *testing.T, w *fakeWatcher, a *Aggregate, c *counters) {
		ctx := context.Background()
		c.setDown(true)
		want := int64(0)
		refused := 0
		for range 40 { // four seconds
			if err := a.Add(ctx, "hot", 3); err == nil {
				want += 3
			} else {
				refused++ // the caller knows
			}
			time.Sleep(100 * time.Millisecond)
		}
		if refused < 15 || refused > 25 { // from MaxAge on
			t.Errorf("%d of 40 were refused", refused)
		}
		if err := a.Flush(ctx); !errors.Is(err, errSource) {
			t.Errorf("flush: %v", err)
		}
		w.set() // leaves the list: the sum must go out all the same
		c.setDown(false)
		time.Sleep(200 * time.Millisecond)
		if n, _ := c.get("hot"); n != want {
			t.Errorf("%d, want %d", n, want)
		}
		if st := a.Stats(); st.Pending != 0 || st.Failed == 0 {
			t.Errorf("stats %+v", st)
		}
	})
}

func TestCloseSaysWhatIsLost(t *testing.T) {
	aggregateTest(t, func(t *testing.T, w *fakeWatcher, a *Aggregate, c *counters) {
		c.setDown(true)
		_ = a.Add(context.Background(), "hot", 7)
		if err := a.Close(context.Background()); !errors.Is(err, errSource) {
			t.Errorf("Close: %v", err)
		}
	})
}

func TestSumsDoNotOverflow(t *testing.T) {
	aggregateTest(t, func(t *testing.T, w *fakeWatcher, a *Aggregate, c *counters) {
		ctx := context.Background()
		_ = a.Add(ctx, "hot", math.MaxInt64)
		_ = a.Add(ctx, "hot", 1) // written by itself
		if n, _ := c.get("hot"); n != 1 {
			t.Errorf("written: %d", n)
		}
		_ = a.Add(ctx, "hot", -5)
		a.mu.Lock()
		defer a.mu.Unlock()
		if got := a.sums["hot"].by; got != math.MaxInt64-5 {
			t.Errorf("sum: %d", got)
		}
	})
}

func TestAggregateOnARealServer(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client()
	w := newFake(Entry{Key: "hot", Action: ActionAggregate})
	a := NewAggregate(w.Watcher, func(ctx context.Context, key string, by int64) error {
		return c.IncrBy(ctx, key, by).Err()
	}, AggregateConfig{Interval: 10 * time.Millisecond})
	for range 1000 {
		if err := a.Add(context.Background(), "hot", 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := s.Do("GET", "hot"); got != "1000" {
		t.Errorf("counter %s", got)
	}
	if n := commands(s, "incrby"); n > 100 {
		t.Errorf("%d commands", n)
	}
}
