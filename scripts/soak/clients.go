package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotsniff/hotsniff/internal/testkit"
	"github.com/hotsniff/hotsniff/scripts/lab"
)

const (
	// clientsArgument makes a process the clients in the other namespace.
	clientsArgument = "clients"

	pool      = 40 // clients at any time
	coldKeys  = 200_000
	hotShare  = 0.2
	valueSize = 100

	// A client lives for up to this long, then another one comes.
	longestLife = 20 * time.Second

	// A client whose server does not answer for so long begins anew; it tries
	// again after the pause.
	patience = 3 * time.Second
	pause    = 200 * time.Millisecond

	stormSize = 300 // clients that come at once, and leave
)

// clients is the load. Commands come on standard input, one a line, and each is
// answered by a line: "device" sets the device up, "go" starts, "hot KEY" and
// "hot" change the hot key, "storm" makes a crowd of short clients, "count"
// answers how many requests were answered so far and how many connections made.
type clients struct {
	rate     int
	hot      atomic.Pointer[string]
	answered atomic.Int64
	made     atomic.Int64
	wg       sync.WaitGroup
}

func clientsMain(args []string) {
	if len(args) != 1 {
		os.Exit(2)
	}
	rate, err := strconv.Atoi(args[0])
	if err != nil {
		os.Exit(2)
	}
	c := &clients{rate: rate}
	ctx, cancel := context.WithCancel(context.Background())
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		answer := "ok"
		if err := c.command(ctx, in.Text(), &answer); err != nil {
			answer = "error " + err.Error()
		}
		fmt.Println(answer)
	}
	cancel()
	c.wg.Wait()
}

func (c *clients) command(ctx context.Context, text string, answer *string) error {
	name, key, _ := strings.Cut(text, " ")
	switch name {
	case "device":
		return errors.Join(lab.IP("addr add "+clientAddress+"/24 dev "+clientDevice), lab.IP("link set "+clientDevice+" up"))
	case "go":
		for i := range pool {
			c.wg.Go(func() { c.forever(ctx, uint64(i)) })
		}
	case "hot":
		c.hot.Store(&key)
	case "storm":
		for i := range stormSize {
			c.wg.Go(func() { c.client(ctx, rand.New(rand.NewPCG(uint64(i), 99)), time.Second) })
		}
	case "count":
		*answer = fmt.Sprint(c.answered.Load(), c.made.Load())
	default:
		return errors.New("what is " + name + "?")
	}
	return nil
}

// forever is one client after the other.
func (c *clients) forever(ctx context.Context, seed uint64) {
	rng := rand.New(rand.NewPCG(1, seed))
	for ctx.Err() == nil {
		c.client(ctx, rng, time.Duration(rng.Float64()*float64(longestLife)))
		select {
		case <-ctx.Done():
		case <-time.After(pause / 4):
		}
	}
}

// client is one connection: it sends pipelines on schedule until its life ends
// or the server does not answer.
func (c *clients) client(ctx context.Context, rng *rand.Rand, life time.Duration) {
	end := time.Now().Add(life)
	conn, err := net.DialTimeout("tcp", fmt.Sprint(serverAddress, ":", serverPort), patience)
	if err != nil {
		time.Sleep(pause)
		return
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	c.made.Add(1)
	in := bufio.NewReader(conn)
	var out []byte
	for time.Now().Before(end) && ctx.Err() == nil {
		depth := 1 + rng.IntN(8)
		out = out[:0]
		for range depth {
			out = c.request(out, rng)
		}
		conn.SetDeadline(time.Now().Add(patience))
		if _, err := conn.Write(out); err != nil {
			return
		}
		for range depth {
			if err := skipReply(in); err != nil {
				return
			}
		}
		c.answered.Add(int64(depth))
		time.Sleep(time.Duration(depth*pool) * time.Second / time.Duration(c.rate))
	}
}

// request appends one request.
func (c *clients) request(out []byte, rng *rand.Rand) []byte {
	key := fmt.Sprint("item:", rng.IntN(coldKeys))
	if hot := c.hot.Load(); hot != nil && *hot != "" && rng.Float64() < hotShare {
		key = *hot
	}
	switch rng.IntN(10) {
	case 0:
		return testkit.AppendCommand(out, "SET", key, strings.Repeat("v", 1+rng.IntN(valueSize)))
	case 1:
		return testkit.AppendCommand(out, "EXISTS", key)
	}
	return testkit.AppendCommand(out, "GET", key)
}

// skipReply reads one reply of the kinds that the requests get.
func skipReply(in *bufio.Reader) error {
	line, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	if line[0] != '$' {
		return nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(line[1:]))
	if err != nil || n < 0 {
		return err
	}
	_, err = io.CopyN(io.Discard, in, int64(n)+2)
	return err
}
