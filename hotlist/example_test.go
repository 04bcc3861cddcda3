package hotlist_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsniff/hotsniff/hotlist"
	"github.com/hotsniff/hotsniff/hotlist/redistest"
)

// addr is the server of the examples; TestExamplesRun starts one.
var addr = "localhost:6379"

// An application asks whether a key is hot, and hears when that changes.
func ExampleWatch() {
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()

	w := hotlist.Watch(ctx, rdb, hotlist.WatchConfig{
		OnEnter: func(h *hotlist.Hot) { fmt.Printf("%s is hot: %s\n", h.Key, h.Action) },
		OnLeave: func(h *hotlist.Hot) { fmt.Printf("%s cooled\n", h.Key) },
	})
	defer w.Close()
	<-w.Ready()

	if w.IsHot("product:1") {
		h, _ := w.Lookup("product:1")
		fmt.Printf("it takes %.0f %% of all accesses\n", 100*h.Share)
	}
}

// The function that read Redis becomes the loader of a cache that holds hot
// keys only.
func ExampleNewCache() {
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	w := hotlist.Watch(ctx, rdb, hotlist.WatchConfig{})
	defer w.Close()

	cache := hotlist.NewCache(w, func(ctx context.Context, key string) (string, error) {
		return rdb.Get(ctx, key).Result()
	}, hotlist.CacheConfig[string]{})
	defer cache.Close()

	v, err := cache.Get(ctx, "product:1")
	fmt.Println(v, err)
}

// An existing client serves its hot keys from memory; nothing changes where it
// is called.
func ExampleNewHook() {
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	w := hotlist.Watch(ctx, rdb, hotlist.WatchConfig{})
	defer w.Close()

	hook := hotlist.NewHook(w, hotlist.HookConfig{Tell: rdb})
	defer hook.Close()
	rdb.AddHook(hook)

	v, err := rdb.Get(ctx, "product:1").Result()
	fmt.Println(v, err)
}

// Reads of a hot key are spread over copies on the nodes of a cluster.
func ExampleNewReplicate() {
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: addr}) // usually a ClusterClient
	defer rdb.Close()
	w := hotlist.Watch(ctx, rdb, hotlist.WatchConfig{})
	defer w.Close()

	r := hotlist.NewReplicate(w, rdb, hotlist.ReplicateConfig{})
	defer r.Close()

	if err := r.Set(ctx, "product:1", "a chair", time.Hour); err != nil {
		fmt.Println(err)
	}
	v, err := r.Get(ctx, "product:1")
	fmt.Println(v, err)
}

// A thousand increments of a hot counter become a few commands.
func ExampleNewAggregate() {
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	w := hotlist.Watch(ctx, rdb, hotlist.WatchConfig{})
	defer w.Close()

	views := hotlist.NewAggregate(w, func(ctx context.Context, key string, by int64) error {
		return rdb.IncrBy(ctx, key, by).Err()
	}, hotlist.AggregateConfig{})
	for range 1000 {
		if err := views.Add(ctx, "views:1", 1); err != nil {
			fmt.Println(err)
		}
	}
	if err := views.Close(ctx); err != nil {
		fmt.Println("lost:", err)
	}
	fmt.Println(rdb.Get(ctx, "views:1").Val())
}

// A client that runs wild on one key is slowed down on that key.
func ExampleNewLimit() {
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	w := hotlist.Watch(ctx, rdb, hotlist.WatchConfig{})
	defer w.Close()

	limit := hotlist.NewLimit(w, hotlist.LimitConfig{PerSecond: 100})
	defer limit.Close()

	if !limit.Allow("product:1") {
		fmt.Println("try again later")
	}
}

// TestExamplesRun runs the examples, which name no output because they need a
// server.
func TestExamplesRun(t *testing.T) {
	s := redistest.Start(t)
	addr = s.Addr
	s.Do("SET", "product:1", "a chair")
	list, err := hotlist.Encode(&hotlist.List{Node: "n", EpochMs: 1, Seq: 1, AtMs: time.Now().UnixMilli(), TTLMs: 60000, Entries: []hotlist.Entry{
		{Key: "product:1", Share: 0.26, Action: hotlist.ActionLocalize, TTLMs: 2000},
		{Key: "views:1", Share: 0.1, Action: hotlist.ActionAggregate, TTLMs: 2000},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.Do("SET", hotlist.ListKeyPrefix+"n", list)
	s.Do("ZADD", hotlist.NodesKey, time.Now().UnixMilli(), "n")
	ExampleWatch()
	ExampleNewCache()
	ExampleNewHook()
	ExampleNewReplicate()
	ExampleNewAggregate()
	ExampleNewLimit()
	if v := s.Do("GET", "views:1"); v != "1000" {
		t.Errorf("views:1 is %s", v)
	}
}
