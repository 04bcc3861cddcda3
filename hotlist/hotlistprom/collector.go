// Package hotlistprom exports what package hotlist counts as Prometheus
// metrics. It is a package of its own so that hotlist does not depend on
// Prometheus.
//
//	c := hotlistprom.NewCollector(watcher)
//	c.Cache("products", cache.Stats)
//	c.Hook("main", hook.Stats)
//	prometheus.MustRegister(c)
package hotlistprom

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotsniff/hotsniff/hotlist"
)

// Collector reads the counters when it is scraped. Safe for any number of
// goroutines.
type Collector struct {
	w *hotlist.Watcher

	mu     sync.Mutex
	caches map[string]func() hotlist.CacheStats
	hooks  map[string]func() hotlist.HookStats
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("hotlist_"+name, help, labels, nil)
}

var (
	connected  = desc("connected", "Whether a subscription to the hot list stands.")
	keys       = desc("keys", "Keys on the merged hot list.")
	nodes      = desc("nodes", "Nodes whose lists are known.")
	age        = desc("age_seconds", "Time since the newest list came; absent before the first one.")
	lists      = desc("lists_total", "Messages of the channel and retained lists, by what became of them.", "result")
	gaps       = desc("gaps_total", "Lists that never came, by their numbers.")
	reconnects = desc("reconnects_total", "Subscriptions that ended or could not be made.")
	notes      = desc("notes_failed_total", "Notes of written hot keys that could not be sent.")
	requests   = desc("requests_total", "Reads, by where they were served from.", "cache", "result")
	loads      = desc("loads_total", "Loads of hot keys.", "cache", "result")
	drops      = desc("drops_total", "Copies dropped because of own writes.", "cache")
	entries    = desc("entries", "Copies in memory.", "cache")
	bytes      = desc("bytes", "Size of the copies in memory.", "cache")
)

// NewCollector returns a collector for a watcher.
func NewCollector(w *hotlist.Watcher) *Collector {
	return &Collector{w: w, caches: make(map[string]func() hotlist.CacheStats), hooks: make(map[string]func() hotlist.HookStats)}
}

// Cache adds a cache under a name, by its method Stats. The name must differ
// from those of other caches and hooks.
func (c *Collector) Cache(name string, stats func() hotlist.CacheStats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.caches[name] = stats
}

// Hook adds a hook under a name, by its method Stats. The name must differ from
// those of other caches and hooks.
func (c *Collector) Hook(name string, stats func() hotlist.HookStats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hooks[name] = stats
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{connected, keys, nodes, age, lists, gaps, reconnects, notes, requests, loads, drops, entries, bytes} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	s := c.w.Status()
	up := 0.0
	if s.Connected {
		up = 1
	}
	gauge(connected, up)
	gauge(keys, float64(s.Keys))
	gauge(nodes, float64(len(s.Nodes)))
	if s.Lists > 0 {
		gauge(age, s.Age.Seconds())
	}
	counter(lists, s.Lists, "accepted")
	counter(lists, s.OutOfDate, "out_of_date")
	counter(lists, s.Lapsed, "lapsed")
	counter(lists, s.Malformed, "malformed")
	counter(lists, s.Versions, "version")
	counter(lists, s.Refused, "refused")
	counter(gaps, s.Gaps)
	counter(reconnects, s.Reconnects)
	counter(notes, s.NotesFailed)

	c.mu.Lock()
	defer c.mu.Unlock()
	for name, stats := range c.caches {
		s := stats()
		counter(requests, s.Hits, name, "hit")
		counter(requests, s.Misses, name, "miss")
		counter(requests, s.Stale, name, "stale")
		counter(requests, s.Cold, name, "cold")
		counter(loads, s.Loads-min(s.Failed, s.Loads), name, "ok")
		counter(loads, s.Failed, name, "failed")
		gauge(entries, float64(s.Entries), name)
		gauge(bytes, float64(s.Bytes), name)
	}
	for name, stats := range c.hooks {
		s := stats()
		counter(requests, s.Hits, name, "hit")
		counter(requests, s.Misses, name, "miss")
		counter(drops, s.Drops, name)
		gauge(entries, float64(s.Entries), name)
		gauge(bytes, float64(s.Bytes), name)
	}
}
