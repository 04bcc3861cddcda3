package actions

import (
	"math"
	"testing"

	"github.com/hotsniff/hotsniff/hotlist"
)

func TestAdvise(t *testing.T) {
	const (
		none, localize, replicate = hotlist.ActionNone, hotlist.ActionLocalize, hotlist.ActionReplicate
		aggregate, limit          = hotlist.ActionAggregate, hotlist.ActionLimit
	)
	for _, tt := range []struct {
		name string
		f    Figures
		want Advice
	}{
		{"read by many",
			Figures{Share: 0.26, AccessesPerSecond: 26100, WriteRatio: 0.01, Clients: 372, TopClientShare: 0.02},
			Advice{localize, hotlist.ReasonReadHot, 2000, 8}},
		{"a fifth of writes shortens the life of copies",
			Figures{Share: 0.26, AccessesPerSecond: 1000, WriteRatio: 0.2, Clients: 9},
			Advice{localize, hotlist.ReasonReadHot, 500, 2}},
		{"counter",
			Figures{Share: 0.1, AccessesPerSecond: 5000, WriteRatio: 0.5, Clients: 30},
			Advice{aggregate, hotlist.ReasonWriteHot, 500, 0}},
		{"big value",
			Figures{Share: 0.03, ByteShare: 0.4, AccessesPerSecond: 900, Clients: 30},
			Advice{replicate, hotlist.ReasonByteHot, 2000, 2}},
		{"bytes in proportion to accesses are not the cause",
			Figures{Share: 0.3, ByteShare: 0.3, AccessesPerSecond: 900, Clients: 30},
			Advice{localize, hotlist.ReasonReadHot, 2000, 2}},
		{"beyond one server",
			Figures{Share: 0.5, AccessesPerSecond: 100000, Clients: 30},
			Advice{replicate, hotlist.ReasonReadHot, 2000, 16}},
		{"one of many clients runs wild",
			Figures{Share: 0.5, AccessesPerSecond: 5000, Clients: 30, TopClientShare: 0.9},
			Advice{limit, hotlist.ReasonSingleClient, 2000, 0}},
		{"the only client of the key, one of many of the port",
			Figures{Share: 0.5, AccessesPerSecond: 5000, Clients: 1, NodeClients: 40, TopClientShare: 1},
			Advice{limit, hotlist.ReasonSingleClient, 2000, 0}},
		{"the only client there is, or a proxy",
			Figures{Share: 0.5, AccessesPerSecond: 5000, Clients: 1, NodeClients: 1, TopClientShare: 1},
			Advice{localize, hotlist.ReasonReadHot, 2000, 2}},
		{"one client, but slow",
			Figures{Share: 0.5, AccessesPerSecond: 99, Clients: 30, TopClientShare: 1},
			Advice{localize, hotlist.ReasonReadHot, 2000, 2}},
		{"pinned, no traffic yet",
			Figures{Pinned: true},
			Advice{localize, hotlist.ReasonManual, 2000, 2}},
		{"pinned with wishes",
			Figures{Pinned: true, Rule: Rule{Action: replicate, ActionSet: true, TTLMs: 100, Copies: 4}},
			Advice{replicate, hotlist.ReasonManual, 100, 4}},
		{"a rule turns a counter into nothing",
			Figures{WriteRatio: 1, Clients: 3, Rule: Rule{Action: none, ActionSet: true}},
			Advice{none, hotlist.ReasonWriteHot, 500, 0}},
		{"a rule that replicates gets a number of copies",
			Figures{WriteRatio: 1, Clients: 3, Rule: Rule{Action: replicate, ActionSet: true}},
			Advice{replicate, hotlist.ReasonWriteHot, 500, 2}},
		{"a rule cannot pass the bounds of the format",
			Figures{Rule: Rule{TTLMs: 1 << 60, Copies: 1 << 30}},
			Advice{localize, hotlist.ReasonReadHot, hotlist.MaxTTLMs, hotlist.MaxCopies}},
	} {
		if got := Advise(AdviceConfig{}, tt.f); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestCopiesArePowersOfTwo(t *testing.T) {
	cfg := AdviceConfig{}.withDefaults()
	for _, tt := range []struct {
		rate float64
		want int
	}{{math.NaN(), 2}, {-1, 2}, {0, 2}, {10000, 2}, {10001, 4}, {20000, 4}, {40000, 8}, {40001, 16}, {math.Inf(1), 16}} {
		if got := copies(cfg, tt.rate); got != tt.want {
			t.Errorf("copies(%v) = %d, want %d", tt.rate, got, tt.want)
		}
	}
	cfg.MaxCopies = 1
	if got := copies(cfg, 1e9); got != 1 {
		t.Errorf("copies with at most one = %d", got)
	}
}
