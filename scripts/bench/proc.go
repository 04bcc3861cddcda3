package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// childTimeout bounds every program that is run to its end: the longest takes a
// few seconds on two cores.
const childTimeout = 90 * time.Second

// command is exec.Command with what all children have in common: they end with
// ctx, after childTimeout, and with this process, even when that is killed.
func command(ctx context.Context, name string, args ...string) (*exec.Cmd, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, childTimeout)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd, cancel
}

// cost is what one process used.
type cost struct {
	cpu, wall time.Duration
	rss       int64 // bytes, the most it had
}

// run runs cmd to its end and returns its cost and its output.
func run(cmd *exec.Cmd) (cost, []byte, error) {
	var out, log bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &log
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		return cost{}, nil, fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, bytes.TrimSpace(log.Bytes()))
	}
	s := cmd.ProcessState
	c := cost{cpu: s.UserTime() + s.SystemTime(), wall: time.Since(begin)}
	if u, ok := s.SysUsage().(*syscall.Rusage); ok {
		c.rss = u.Maxrss << 10
	}
	return c, out.Bytes(), nil
}

// runCommand is command and run in one.
func runCommand(ctx context.Context, name string, args ...string) (cost, []byte, error) {
	cmd, cancel := command(ctx, name, args...)
	defer cancel()
	return run(cmd)
}

// background is a program that runs beside something else.
type background struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	log    *watchBuffer
	done   chan struct{}
}

// startUntil starts a program and waits until its standard error has the text,
// if one is given. stop ends it.
func startUntil(ctx context.Context, text, name string, args ...string) (*background, error) {
	cmd, cancel := command(ctx, name, args...)
	b := &background{cmd: cmd, cancel: cancel, log: newWatchBuffer(text), done: make(chan struct{})}
	cmd.Stderr = b.log
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	go func() { cmd.Wait(); close(b.done) }()
	select {
	case <-b.log.seen:
		return b, nil
	case <-b.done:
	case <-time.After(5 * time.Second):
	}
	b.stop()
	return nil, fmt.Errorf("%s did not begin: %s", name, b.log.String())
}

// stop asks the program to end and waits for it; it may be called twice.
func (b *background) stop() {
	b.cmd.Process.Signal(os.Interrupt)
	select {
	case <-b.done:
	case <-time.After(5 * time.Second):
		b.cancel()
		<-b.done
	}
	b.cancel()
}

// onCPU runs f with this thread on one CPU; programs that f starts stay there
// with all their threads.
func onCPU(cpu int, f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("run on CPU %d: %w", cpu, err)
	}
	defer unix.SchedSetaffinity(0, &before)
	return f()
}

// cpus are the CPUs that the parts run on.
type cpus struct{ server, load, observer int }

// chooseCPUs gives Redis a CPU of its own; observers share one with the load
// generator where there are only two.
func chooseCPUs() cpus {
	var set unix.CPUSet
	var all []int
	if unix.SchedGetaffinity(0, &set) == nil {
		for i := range 1024 {
			if set.IsSet(i) {
				all = append(all, i)
			}
		}
	}
	switch len(all) {
	case 0:
		return cpus{}
	case 1:
		return cpus{all[0], all[0], all[0]}
	case 2:
		return cpus{all[0], all[1], all[1]}
	}
	return cpus{all[0], all[1], all[2]}
}

// cpuTime returns the CPU time that all threads of a process have used, in
// nanoseconds where the kernel keeps them and else in ticks of 10 ms.
func cpuTime(pid int) (time.Duration, error) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	var sum time.Duration
	for _, path := range tasks {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // a thread that has just ended
		}
		ns, _, _ := strings.Cut(string(text), " ")
		n, err := strconv.ParseInt(ns, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n)
	}
	if sum > 0 {
		return sum, nil
	}
	return cpuTicks(pid)
}

// cpuTicks reads utime and stime.
func cpuTicks(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(string(text), ") ") // the name may hold blanks
	fields := strings.Fields(rest)
	if !ok || len(fields) < 13 {
		return 0, errors.New("cannot read /proc/PID/stat")
	}
	const tick = time.Second / 100 // USER_HZ, the same everywhere
	var sum time.Duration
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}
