// Pictures takes the picture of `hotsniff top` for the README: a real
// redis-server, real traffic, a real capture, and what stands on the screen of
// a real terminal (tmux) after a little more than a minute, as an SVG file.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hotsniff/hotsniff/internal/testkit"
)

func main() {
	bin := flag.String("hotsniff", "bin/hotsniff", "the program")
	out := flag.String("out", "docs/images/top.svg", "file to write")
	wait := flag.Duration("wait", 70*time.Second, "how long to look before the picture is taken")
	width := flag.Int("width", 126, "cells")
	height := flag.Int("height", 20, "cells")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := take(ctx, *bin, *out, *wait, *width, *height)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// take runs the load and the program, and writes what the screen shows.
func take(ctx context.Context, bin, out string, wait time.Duration, width, height int) error {
	redis, err := testkit.StartRedis()
	if err != nil {
		return err
	}
	defer redis.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := startLoad(ctx, redis.Addr()); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "hotsniff-pictures-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "tmux")
	tmux := func(args ...string) ([]byte, error) {
		cmd := exec.Command("tmux", append([]string{"-u", "-S", socket}, args...)...)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TMUX=")
		cmd.Stderr = os.Stderr
		return cmd.Output()
	}
	if _, err := tmux("-f", "/dev/null", "new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height),
		bin, "top", "--interface", "lo", "--port", strconv.Itoa(redis.Port), "--node", "redis-1"); err != nil {
		return fmt.Errorf("tmux: %w", err)
	}
	defer tmux("kill-server")
	fmt.Fprintf(os.Stderr, "looking for %v\n", wait)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
	}
	screen, err := tmux("capture-pane", "-p", "-e")
	if err != nil {
		return fmt.Errorf("tmux: %w", err)
	}
	if !strings.Contains(string(screen), "product:1842") {
		return errors.New("the screen does not show the hot key:\n" + string(screen))
	}
	return os.WriteFile(out, []byte(svg(string(screen), width, height)), 0o644)
}

// load is one kind of traffic: clients that send a command at a rate.
type load struct {
	clients []string // local addresses
	command func(i int) []string
	rate    func(t time.Duration) float64 // commands a second of all clients
}

func steady(rate float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return rate }
}

// startLoad starts a shop in the evening: one product is on sale.
func startLoad(ctx context.Context, addr string) error {
	shops := []string{"127.0.0.11", "127.0.0.12", "127.0.0.13", "127.0.0.14"}
	for _, set := range [][]string{
		{"SET", "product:1842", strings.Repeat("x", 1800)}, {"SET", "config:flags", strings.Repeat("x", 300)},
		{"SET", "page:home:de", strings.Repeat("x", 9000)},
	} {
		if _, err := testkit.Ask(addr, set...); err != nil {
			return err
		}
	}
	get := func(key string) func(int) []string { return func(int) []string { return []string{"GET", key} } }
	loads := []load{
		{shops, get("product:1842"), func(t time.Duration) float64 { return 60 + 1400/(1+math.Exp(-(t.Seconds()-25)/6)) }},
		{shops, get("config:flags"), steady(220)},
		{shops[:1], func(i int) []string { return []string{"INCR", "counter:orders"} }, func(t time.Duration) float64 {
			return 130 + 90*math.Sin(t.Seconds()/5)
		}},
		{shops, get("page:home:de"), steady(95)},
		{shops, func(i int) []string {
			return []string{"HGETALL", fmt.Sprintf("session:%04x", i*i*7919%1200)}
		}, steady(900)},
		{shops, func(i int) []string { return []string{"GET", fmt.Sprintf("product:%d", i*i*31%(i%97*9+31))} }, steady(700)},
		{shops[1:2], func(i int) []string {
			return []string{"ZADD", "ranking:today", strconv.Itoa(i), "m" + strconv.Itoa(i%50)}
		}, steady(70)},
		{shops[3:], func(i int) []string { return []string{"SET", "lock:cron", "1"} }, steady(24)},
	}
	for _, l := range loads {
		for _, local := range l.clients {
			if err := l.start(ctx, addr, local); err != nil {
				return err
			}
		}
	}
	return nil
}

// start runs one client until ctx ends.
func (l *load) start(ctx context.Context, addr, local string) error {
	conn, err := dialFrom(ctx, addr, local)
	if err != nil {
		return err
	}
	begin := time.Now()
	go func() {
		defer conn.Close()
		var out []byte
		for i, due := 0, 0.0; ctx.Err() == nil; {
			since := time.Since(begin)
			rate := l.rate(since) / float64(len(l.clients))
			time.Sleep(20 * time.Millisecond)
			out = out[:0]
			for due += rate * (time.Since(begin) - since).Seconds(); due >= 1; due-- {
				out = testkit.AppendCommand(out, l.command(i)...)
				i++
			}
			if _, err := conn.Write(out); err != nil {
				return
			}
		}
	}()
	return nil
}
