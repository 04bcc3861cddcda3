package hotlist

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestLimitIsForKeysThatAreToBeLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFake(hotKey("read"), Entry{Key: "wild", Action: ActionLimit})
		l := NewLimit(w.Watcher, LimitConfig{PerSecond: 10})
		defer l.Close()
		count := func(key string) (n int) {
			for range 100 {
				if l.Allow(key) {
					n++
				}
			}
			return n
		}
		for key, want := range map[string]int{"cold": 100, "read": 100, "wild": 10} {
			if n := count(key); n != want {
				t.Errorf("%s: %d of 100 allowed, want %d", key, n, want)
			}
		}
		time.Sleep(500 * time.Millisecond)
		if n := count("wild"); n != 5 {
			t.Errorf("half a second later: %d allowed", n)
		}
		begin := time.Now()
		for range 10 {
			if err := l.Wait(context.Background(), "wild"); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(begin); d != time.Second {
			t.Errorf("ten took %v", d)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		if err := l.Wait(ctx, "wild"); err == nil {
			t.Error("waited longer than the context lasts")
		}
		if err := l.Wait(ctx, "cold"); err != nil {
			t.Error(err)
		}
		w.set()
		if n := count("wild"); n != 100 {
			t.Errorf("after it left the list: %d allowed", n)
		}
		w.set(Entry{Key: "wild", Action: ActionLimit})
		if n := count("wild"); n != 10 {
			t.Errorf("back on the list: %d allowed", n)
		}
		if allowed, denied := l.Stats(); allowed != 35 || denied != 90+95+90+1 {
			t.Errorf("allowed %d, denied %d", allowed, denied)
		}
	})
}
