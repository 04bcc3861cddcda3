package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

const (
	// namespaceVariable tells a process that it runs in the benchmark's own
	// network namespace.
	namespaceVariable = "HOTSNIFF_BENCH_NAMESPACE"
	// parkArgument makes a process hold a namespace until its input ends.
	parkArgument = "park"
)

// inNamespace runs this program again in a network namespace of its own, where
// nothing of the machine's traffic is, and nothing it does reaches anybody.
func inNamespace() (code int) {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), namespaceVariable+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "bench: make a network namespace:", err)
		return 1
	}
	// ^C reaches the child by itself; a signal to this process alone does not.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for sig := range signals {
			cmd.Process.Signal(sig)
		}
	}()
	if cmd.Wait(); cmd.ProcessState.Exited() {
		return cmd.ProcessState.ExitCode()
	}
	return 1
}

// ip runs ip(8) with the words of args.
func ip(args string) error {
	path, err := exec.LookPath("ip")
	if err != nil {
		path = "/sbin/ip" // not in the PATH of everybody
	}
	out, err := exec.Command(path, strings.Fields(args)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", args, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// pair is a veth device here whose other end is in another namespace.
type pair struct {
	name string
	park *exec.Cmd // holds the other namespace
	in   io.Closer
}

// newPair makes a pair of devices name+"0" here and name+"1" elsewhere.
func newPair(name string) (*pair, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &pair{name: name + "0", park: exec.Command(self, parkArgument)}
	p.park.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	out, err := p.park.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.park.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.park.Start(); err != nil {
		return nil, err
	}
	if err := ip("link add " + p.name + " type veth peer name " + name + "1 netns " + strconv.Itoa(p.park.Process.Pid)); err != nil {
		p.close()
		return nil, err
	}
	if err := ip("link set " + p.name + " up"); err != nil {
		p.close()
		return nil, err
	}
	// The other side says when its end is up.
	fmt.Fprintln(p.in.(io.Writer), name+"1")
	var ok string
	if _, err := fmt.Fscan(out, &ok); err != nil {
		p.close()
		return nil, errors.New("the other end of " + p.name + " does not come up")
	}
	return p, nil
}

// close removes the pair and the other namespace.
func (p *pair) close() {
	ip("link del " + p.name)
	p.in.Close()
	p.park.Process.Kill()
	p.park.Wait()
}

// parkHere is the process in the other namespace: it brings the device up whose
// name it reads, and then waits for the end of its input.
func parkHere() {
	var name string
	if _, err := fmt.Scan(&name); err != nil {
		return
	}
	if err := ip("link set " + name + " up"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Println("up")
	io.Copy(io.Discard, os.Stdin)
}
