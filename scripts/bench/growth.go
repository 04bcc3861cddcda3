package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/hotsniff/hotsniff/internal/report"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

const (
	growthRounds   = 5
	growthAllowed  = 40 * time.Second
	growthRequests = 4_000_000 // of a file, or as many as there are keys
	growthRate     = 200_000   // requests a second of packet time
	growthKeys     = 10_000    // while connections grow
	growthConns    = 100       // while keys grow

	// hugeKeys are read once, where the time allows: about half a minute, with
	// room for the parts that follow.
	hugeKeys = 100_000_000
	hugeLeft = 4 * time.Minute
)

// growthLoad is traffic in which every tenth request is for one key and the
// others take all keys in turn.
type growthLoad struct {
	keys, conns, depth, requests int

	network byte // of the clients: no load goes on with the connections of another
}

const (
	growthHot      = "key:hhhhhhhhhhhhhhhh"
	growthHotEvery = 10
)

// frames calls emit with every frame; one is valid during the call. It ends at
// the first false. A connection is opened when its first request is due: the
// daemon remembers 32,768 SYNs without data and no more.
func (g *growthLoad) frames(emit func(t int64, requests int, frame []byte) bool) {
	server := netip.MustParseAddrPort("10.0.0.1:6379")
	flows := make([]*testkit.Flow, g.conns)
	t := int64(1_700_000_000e9)
	for i := range flows {
		addr := netip.AddrFrom4([4]byte{10, g.network, byte(i >> 14), 7})
		flows[i] = testkit.NewFlow(netip.AddrPortFrom(addr, uint16(20000+i&0x3fff)), server)
	}
	payload := make([]byte, 0, 64*g.depth)
	for i, turn := 0, 0; i < g.requests; turn++ {
		payload = payload[:0]
		for range g.depth {
			payload = appendGrowthRequest(payload, i, g.keys)
			i++
		}
		t += int64(g.depth) * int64(time.Second) / growthRate
		f := flows[turn%g.conns]
		if turn < g.conns && !emit(t, 0, f.Frame(testkit.SYN, nil)) {
			return
		}
		if !emit(t, g.depth, f.Frame(testkit.ACK, payload)) {
			return
		}
		f.Answered(uint32(5 * g.depth))
	}
}

// appendGrowthRequest appends the i-th request.
func appendGrowthRequest(dst []byte, i, keys int) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, "*2\r\n$3\r\nGET\r\n$20\r\n"...)
	if mix(uint64(i))%growthHotEvery == 0 {
		dst = append(dst, growthHot...)
	} else {
		dst = append(dst, "key:"...)
		for shift, k := 60, mix(uint64(i%keys)+1<<40); shift >= 0; shift -= 4 {
			dst = append(dst, digits[k>>shift&15])
		}
	}
	return append(dst, "\r\n"...)
}

// mix is a permutation of the 64-bit numbers without visible order.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// file writes the traffic as a pcap file.
func (g *growthLoad) file(w io.Writer) error {
	out := testkit.NewPcapWriter(bufio.NewWriterSize(w, 1<<20))
	g.frames(func(t int64, _ int, frame []byte) bool { out.Write(t, frame); return true })
	return out.Flush()
}

// read lets hotsniff count the traffic as the daemon does, in windows, and
// returns requests a second of its CPU time.
func (g *growthLoad) read(ctx context.Context, bin string) (perSecond float64, err error) {
	c, out, err := readPipe(ctx, []string{bin, "read", "--window", "60s", "--format", "json", "-"}, g.file)
	if err != nil {
		return 0, err
	}
	var rep report.Report
	if err := json.Unmarshal(out, &rep); err != nil {
		return 0, err
	}
	if len(rep.Keys) == 0 || rep.Keys[0].Key != growthHot || rep.Keys[0].Share < 0.09 {
		return 0, fmt.Errorf("%d keys, %d connections: the hot key is not at the top", g.keys, g.conns)
	}
	return float64(g.requests) / c.cpu.Seconds(), nil
}

// growth measures what more keys and more connections cost.
func growth(ctx context.Context, s *settings, t *table) error {
	byKeys := []growthLoad{}
	for _, keys := range []int{1e3, 1e3, 1e4, 1e5, 1e6, 1e7} {
		byKeys = append(byKeys, growthLoad{keys: keys, conns: growthConns, depth: 16, requests: max(growthRequests, keys)})
	}
	byConns := []growthLoad{}
	for _, conns := range []int{1, 1, 10, 100, 1e3, 1e4, 1e5} {
		byConns = append(byConns, growthLoad{keys: growthKeys, conns: conns, depth: 1, requests: growthRequests / 2})
	}
	rates, err := growthSeries(ctx, s, byKeys)
	if err != nil {
		return err
	}
	if s.left() > hugeLeft {
		huge := growthLoad{keys: hugeKeys, conns: growthConns, depth: 16, requests: hugeKeys}
		rate, err := huge.read(ctx, s.bin)
		if err != nil {
			return err
		}
		byKeys, rates = append(byKeys, huge), append(rates, []float64{rate})
	} else {
		t.skip("growth: "+thousands(hugeKeys)+" keys", "it would take too long; see -limit")
	}
	addGrowth(t, byKeys, rates, func(g *growthLoad) (int, string) { return g.keys, "keys" })
	if rates, err = growthSeries(ctx, s, byConns); err != nil {
		return err
	}
	addGrowth(t, byConns, rates, func(g *growthLoad) (int, string) { return g.conns, "connections" })
	return nil
}

// growthSeries returns the requests a second of each load, one a round.
func growthSeries(ctx context.Context, s *settings, loads []growthLoad) ([][]float64, error) {
	rates := make([][]float64, len(loads))
	for round, begin := 0, time.Now(); round < growthRounds && s.more(round, begin, growthAllowed); round++ {
		for i := range loads {
			rate, err := loads[i].read(ctx, s.bin)
			if err != nil {
				return nil, err
			}
			rates[i] = append(rates[i], rate)
		}
	}
	return rates, nil
}

// addGrowth compares all sizes with the first, which was measured twice.
func addGrowth(t *table, loads []growthLoad, rates [][]float64, size func(*growthLoad) (int, string)) {
	const flat = 0.7 // within 30 %
	base, control := means(rates[0], rates[1]), ratios(rates[1], rates[0])
	first, what := size(&loads[0])
	t.add(line{what: fmt.Sprintf("e. growth: requests/s of one core, %s %s", thousands(first), what), unit: "million", values: scale(base, 1e-6)})
	for i := 2; i < len(loads); i++ {
		n, _ := size(&loads[i])
		value := ratios(rates[i], base)
		if len(rates[i]) == 1 { // measured once, outside the rounds
			value = []float64{rates[i][0] / median(base)}
		}
		t.add(line{what: fmt.Sprintf("e. growth: the same at %s %s", thousands(n), what), unit: "x", values: value,
			goal: atLeast(flat), control: control})
	}
}
