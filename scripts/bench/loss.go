package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"strings"

	"github.com/hotsniff/hotsniff/internal/report"
	"github.com/hotsniff/hotsniff/internal/testkit"
	"github.com/hotsniff/hotsniff/scripts/lab"
)

const (
	lossRate     = 0.01
	lossConns    = 20
	lossKeys     = 1000
	lossValue    = 200 // bytes at most: a pipeline of 16 takes two segments
	lossRequests = 400_000
	lossSegment  = 1460
)

// truth is what a reader of a lossy recording can know.
type truth struct {
	sent     int
	survived int // requests of which no byte was lost
	keys     map[string]uint64
}

// lossy writes a recording of both directions to w in which a part of the
// packets is missing, and returns what was in it. depth is the length of the
// pipelines. It is a function of its arguments.
func lossy(w io.Writer, depth int, rate float64) (*truth, error) {
	rng := rand.New(rand.NewPCG(1, uint64(depth)))
	dice := rand.New(rand.NewPCG(2, uint64(depth))) // of its own: the traffic is the same at every rate
	out := testkit.NewPcapWriter(bufio.NewWriterSize(w, 1<<20))
	server := netip.MustParseAddrPort("10.0.0.1:6379")
	var clients, servers [lossConns]*testkit.Flow
	t := int64(1_700_000_000e9)
	frame := func(f *testkit.Flow, flags byte, payload []byte) (kept bool) {
		t += 5_000
		b := f.Frame(flags, payload)
		if rate > 0 && dice.Float64() < rate {
			return false
		}
		out.Write(t, b)
		return true
	}
	for i := range clients {
		client := netip.AddrPortFrom(netip.MustParseAddr("10.0.0.7"), uint16(40000+i))
		clients[i], servers[i] = testkit.NewFlow(client, server), testkit.NewFlow(server, client)
		frame(clients[i], testkit.SYN, nil)
		servers[i].Answered(1)
	}
	tr := &truth{keys: make(map[string]uint64)}
	value := strings.Repeat("v", lossValue)
	var pipeline []byte
	var ends []int // of the requests in pipeline
	for i := 0; tr.sent < lossRequests; i++ {
		c := i % lossConns
		pipeline, ends = pipeline[:0], ends[:0]
		for range depth {
			key := fmt.Sprintf("key:%d", int(lossKeys*rng.Float64()*rng.Float64()))
			pipeline = testkit.AppendCommand(pipeline, "SET", key, value[:1+rng.IntN(lossValue)])
			ends = append(ends, len(pipeline))
			tr.keys[key]++
		}
		tr.sent += depth
		tr.survived += survivors(ends, func(from, to int) bool { return frame(clients[c], testkit.ACK, pipeline[from:to]) })
		reply := strings.Repeat("+OK\r\n", depth)
		servers[c].Answered(uint32(len(pipeline)))
		frame(servers[c], testkit.ACK, []byte(reply))
		clients[c].Answered(uint32(len(reply)))
	}
	return tr, out.Flush()
}

// survivors sends the bytes up to the last end in segments and returns how many
// requests, which end at ends, lie in kept segments with all their bytes.
func survivors(ends []int, send func(from, to int) (kept bool)) int {
	total, n, next, whole := ends[len(ends)-1], 0, 0, true
	for from := 0; from < total; from += lossSegment {
		to := min(from+lossSegment, total)
		kept := send(from, to)
		whole = whole && kept // of the request that began before this segment
		for ; next < len(ends) && ends[next] <= to; next++ {
			if whole {
				n++
			}
			whole = kept
		}
	}
	return n
}

// loss reads recordings of which 1 % of the packets is missing.
func loss(ctx context.Context, s *settings, t *table) error {
	for _, depth := range []int{1, 16} {
		name := fmt.Sprintf("f. pipelines of %d, 1 %% of the packets lost: ", depth)
		whole, err := readLossy(ctx, s.bin, depth, 0)
		if err != nil {
			return err
		}
		torn, err := readLossy(ctx, s.bin, depth, lossRate)
		if err != nil {
			return err
		}
		t.add(line{what: name + "surviving requests counted", unit: "%", goal: atLeast(98),
			values: []float64{torn.counted}, control: []float64{whole.counted / 100}},
			line{what: name + "accesses counted that were never made", values: []float64{torn.invented}, goal: atMost(0)},
			line{what: name + "RSS", unit: "MiB", values: []float64{torn.rss}, goal: atMost(64)})
	}
	return nil
}

// lossResult is what hotsniff made of a recording.
type lossResult struct{ counted, invented, rss float64 }

func readLossy(ctx context.Context, bin string, depth int, rate float64) (*lossResult, error) {
	var tr *truth
	c, out, err := readPipe(ctx, []string{bin, "read", "--top", "0", "--format", "json", "-"}, func(w io.Writer) (err error) {
		tr, err = lossy(w, depth, rate)
		return err
	})
	if err != nil {
		return nil, err
	}
	var rep report.Report
	if err := json.Unmarshal(out, &rep); err != nil {
		return nil, err
	}
	r := &lossResult{counted: 100 * float64(rep.Commands["SET"]) / float64(tr.survived), rss: lab.MiB(c.rss)}
	for i := range rep.Keys {
		if k := &rep.Keys[i]; k.Accesses > tr.keys[k.Key] {
			r.invented += float64(k.Accesses - tr.keys[k.Key])
		}
	}
	return r, nil
}
