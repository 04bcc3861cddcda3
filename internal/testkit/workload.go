package testkit

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Workload drives GET requests at a Redis server with a known share of one
// key. Fields are set before Run; the Truth methods may be called meanwhile.
type Workload struct {
	Addr     string
	Conns    int                                    // client connections
	Pipeline int                                    // requests in one write, default 1
	Rate     int                                    // requests a second over all connections
	HotKey   string                                 // the key whose share is known
	Share    func(sinceStart time.Duration) float64 // its share, 0..1
	// HotKeyAt, if set, names the key whose share is known in place of HotKey.
	HotKeyAt func(sinceStart time.Duration) string
	Keys     int // number of other keys, accessed by a Zipf law with exponent 0.7
	Seed     uint64

	start time.Time
	ticks [truthTicks]truthTick
	sent  atomic.Int64
}

// truthTick counts what was sent in a short time.
type truthTick struct{ total, hot atomic.Int64 }

const (
	truthEvery = 25 * time.Millisecond
	truthTicks = 40 * 600 // ten minutes; a longer run stops counting truth
)

// Run drives the load until ctx ends. It returns the first failure of a
// connection, or nil.
func (w *Workload) Run(ctx context.Context) error {
	w.start = time.Now()
	errs := make(chan error, w.Conns)
	var wg sync.WaitGroup
	for i := range w.Conns {
		wg.Go(func() { errs <- w.drive(ctx, uint64(i)) })
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// drive is one client: it sends pipelines on schedule and reads the replies.
func (w *Workload) drive(ctx context.Context, id uint64) error {
	conn, err := net.Dial("tcp", w.Addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	rng := rand.New(rand.NewPCG(w.Seed, id))
	cold := newZipf(rng, 0.7, w.Keys)
	depth := max(w.Pipeline, 1)
	interval := time.Duration(float64(time.Second) * float64(depth*w.Conns) / float64(w.Rate))
	// A random phase keeps the clients from sending in step.
	next := w.start.Add(time.Duration(rng.Float64() * float64(interval)))
	in, out := bufio.NewReader(conn), make([]byte, 0, 64*depth)
	for ctx.Err() == nil {
		time.Sleep(time.Until(next))
		next = next.Add(interval)
		out = out[:0]
		hot := 0
		for range depth {
			since := time.Since(w.start)
			if rng.Float64() < w.Share(since) {
				hot++
				key := w.HotKey
				if w.HotKeyAt != nil {
					key = w.HotKeyAt(since)
				}
				out = AppendCommand(out, "GET", key)
			} else {
				out = AppendCommand(out, "GET", fmt.Sprintf("item:%d", cold.next()))
			}
		}
		if _, err := conn.Write(out); err != nil {
			return err
		}
		w.count(depth, hot)
		if err := skipReplies(in, depth); err != nil {
			return err
		}
	}
	return nil
}

// count adds requests that are on the wire to the truth.
func (w *Workload) count(total, hot int) {
	if i := int(time.Since(w.start) / truthEvery); i < truthTicks {
		w.ticks[i].total.Add(int64(total))
		w.ticks[i].hot.Add(int64(hot))
	}
	w.sent.Add(int64(total))
}

// skipReplies reads n replies to GET.
func skipReplies(in *bufio.Reader, n int) error {
	for range n {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		var size int
		if _, err := fmt.Sscanf(string(line), "$%d", &size); err != nil {
			return fmt.Errorf("reply %q to GET", line)
		}
		if size >= 0 {
			if _, err := io.CopyN(io.Discard, in, int64(size)+2); err != nil {
				return err
			}
		}
	}
	return nil
}

// Start returns when Run began.
func (w *Workload) Start() time.Time { return w.start }

// Sent returns the number of requests sent so far.
func (w *Workload) Sent() int64 { return w.sent.Load() }

// TrueShare returns the share of the hot key among the requests sent in the
// window that ends at now, and their number, to 25 ms.
func (w *Workload) TrueShare(now time.Time, window time.Duration) (share float64, total int64) {
	end := int((now.Sub(w.start) + truthEvery/2) / truthEvery)
	var hot int64
	for i := max(end-int(window/truthEvery), 0); i < min(end, truthTicks); i++ {
		total += w.ticks[i].total.Load()
		hot += w.ticks[i].hot.Load()
	}
	if total == 0 {
		return 0, 0
	}
	return float64(hot) / float64(total), total
}

// zipf draws ranks 1..n with probability proportional to rank^-s, for s < 1 as
// well, which math/rand/v2.Zipf cannot.
type zipf struct {
	rng *rand.Rand
	cum []float64
}

func newZipf(rng *rand.Rand, s float64, n int) *zipf {
	z := &zipf{rng: rng, cum: make([]float64, max(n, 1))}
	sum := 0.0
	for i := range z.cum {
		sum += math.Pow(float64(i+1), -s)
		z.cum[i] = sum
	}
	return z
}

func (z *zipf) next() int {
	u := z.rng.Float64() * z.cum[len(z.cum)-1]
	lo, hi := 0, len(z.cum)-1
	for lo < hi {
		mid := (lo + hi) / 2
		if z.cum[mid] < u {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo + 1
}
