// The soak runs hotsniff for a long time beside a Redis server to which
// everything happens that happens to one: clients come and go, another key is
// hot every half minute, the configuration is reloaded (a bad one too), the
// network device goes down and comes back or is replaced, Redis is restarted.
// In the end memory, goroutines and descriptors must be as they were, every hot
// key must have been reported, and nothing unexpected may stand in the log.
//
// It runs as root, in two network namespaces of its own with a veth pair between
// them: the server with hotsniff in one, the clients in the other.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hotsniff/hotsniff/scripts/lab"
)

const (
	serverDevice, clientDevice   = "hss0", "hss1"
	serverAddress, clientAddress = "10.77.0.1", "10.77.0.2"
	serverPort                   = 6379
)

// settings are the flags.
type settings struct {
	bin      string
	duration time.Duration
	rate     int
	recreate bool
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == clientsArgument {
		clientsMain(os.Args[2:])
		return
	}
	var s settings
	minutes := flag.Float64("minutes", 30, "how long")
	flag.StringVar(&s.bin, "hotsniff", "bin/hotsniff", "the program to run")
	flag.IntVar(&s.rate, "rate", 5000, "requests a second")
	flag.BoolVar(&s.recreate, "recreate", true, "also delete the network device and make it anew")
	flag.Parse()
	s.duration = time.Duration(*minutes * float64(time.Minute))
	if s.duration < leastDuration || s.rate < 100 {
		fmt.Fprintf(os.Stderr, "soak: want at least %v and 100 requests a second\n", leastDuration)
		os.Exit(2)
	}
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "soak: needs root, for network namespaces and a capture in them")
		os.Exit(2)
	}
	if err := lab.EnterNamespace(); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := soak(ctx, &s)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// soak runs it all and returns an error unless the verdict is good.
func soak(ctx context.Context, s *settings) error {
	dir, err := os.MkdirTemp("", "hotsniff-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	w := &world{settings: s, dir: dir}
	defer w.stop()
	if err := w.start(); err != nil {
		return err
	}
	fmt.Printf("soak for %v: %d requests a second, reload by SIGHUP: %v, device replaced: %v\n",
		s.duration, s.rate, w.canReload, s.recreate)
	runCtx, cancel := context.WithTimeout(ctx, s.duration)
	defer cancel()
	var v verdict
	runErr := w.run(runCtx, &v)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	w.finish(&v)
	if runErr != nil {
		v.fail("%v", runErr)
	}
	return v.print(os.Stdout)
}
