// Package lab is what the scripts that measure share: a network namespace of
// their own, devices in it, and looks at a process from outside.
package lab

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

// namespaceVariable tells a process that it runs in a network namespace of its
// own.
const namespaceVariable = "HOTSNIFF_OWN_NAMESPACE"

// InNamespace reports whether this process runs in a namespace that
// EnterNamespace made.
func InNamespace() bool { return os.Getenv(namespaceVariable) != "" }

// EnterNamespace, called as root at the start of main, runs this program again
// in a network namespace of its own, where nothing of the machine's traffic is
// and nothing it does reaches anybody, and ends this process with its exit code.
// The kernel removes the namespace with the last process in it. In the program
// that runs again, and without root, it returns; the loopback is up then.
func EnterNamespace() error {
	if InNamespace() {
		return IP("link set lo up")
	}
	if os.Geteuid() == 0 {
		os.Exit(again())
	}
	return nil
}

func again() (code int) {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), namespaceVariable+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "make a network namespace:", err)
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

// IP runs ip(8) with the words of args.
func IP(args string) error {
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

// Other starts this program again with the given arguments in one more network
// namespace, as another host, so to say. The caller sets its streams, starts it
// and ends it; it ends with this process.
func Other(args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	return cmd, nil
}
