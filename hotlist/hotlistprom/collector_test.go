package hotlistprom

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/hotsniff/hotsniff/hotlist"
)

func TestCollector(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	defer rdb.Close()
	w := hotlist.Watch(context.Background(), rdb, hotlist.WatchConfig{})
	defer w.Close()
	c := NewCollector(w)
	c.Cache("a", func() hotlist.CacheStats { return hotlist.CacheStats{Hits: 7, Loads: 3, Failed: 1, Entries: 2} })
	c.Hook("b", func() hotlist.HookStats { return hotlist.HookStats{Hits: 5, Drops: 4} })
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, f := range families {
		for _, m := range f.GetMetric() {
			got.WriteString(f.GetName())
			for _, l := range m.GetLabel() {
				got.WriteString(" " + l.GetName() + "=" + l.GetValue())
			}
			got.WriteString("\n")
			if strings.HasSuffix(f.GetName(), "_total") != (m.GetCounter() != nil) {
				t.Errorf("%s has the wrong type", f.GetName())
			}
		}
	}
	for _, want := range []string{
		"hotlist_connected\n", "hotlist_requests_total cache=a result=hit\n", "hotlist_requests_total cache=b result=hit\n",
		"hotlist_loads_total cache=a result=ok\n", "hotlist_drops_total cache=b\n", "hotlist_entries cache=a\n", "hotlist_lists_total result=malformed\n",
	} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("no %q in\n%s", want, got.String())
		}
	}
	if strings.Contains(got.String(), "hotlist_age_seconds") {
		t.Error("an age before the first list")
	}
}
