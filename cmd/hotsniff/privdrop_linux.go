package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// confinedEnv holds the number of a process that has confined itself already:
// whatever came of it, it is not tried a second time.
const confinedEnv = "HOTSNIFF_CONFINED_PID"

// capSet is a set of capabilities, bit n for capability n.
type capSet uint64

func caps(list ...int) capSet {
	var s capSet
	for _, c := range list {
		s |= 1 << c
	}
	return s
}

// confine gives up for good every capability of this process that is not in
// keep, on every thread, and everything that executing a program could bring.
//
// Capabilities belong to threads, and the Go runtime has several before main
// begins; with cgo the others cannot be made to follow. So the calling thread
// drops its own and executes this program once more: the kernel ends all other
// threads, and whatever is started later inherits from the one that is left.
// The process keeps its number, its files and its environment. confine returns
// when there is nothing to do, which is so after that, or when it failed.
func confine(keep capSet) error {
	done := os.Getenv(confinedEnv) == strconv.Itoa(os.Getpid())
	os.Unsetenv(confinedEnv)
	has, err := confinedTo(keep)
	if err != nil || has {
		return err
	}
	if done {
		return errors.New("capabilities are still there after they were dropped")
	}
	// Without /proc the path is what the shell found.
	path, err := os.Executable()
	if err != nil {
		if path, err = exec.LookPath(os.Args[0]); err != nil {
			return err
		}
	}
	runtime.LockOSThread() // the thread that drops is the one that executes
	if err := dropThread(keep); err != nil {
		return err
	}
	env := append(os.Environ(), confinedEnv+"="+strconv.Itoa(os.Getpid()))
	return fmt.Errorf("execute %s: %w", path, syscall.Exec(path, os.Args, env))
}

// confinedTo reports whether this thread has no capability outside of keep
// and can get none. Threads differ only if confine failed half way.
func confinedTo(keep capSet) (bool, error) {
	_, _, permitted, err := capget()
	if err != nil {
		return false, err
	}
	nnp, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil {
		return false, fmt.Errorf("prctl: %w", err)
	}
	return permitted&^keep == 0 && nnp == 1, nil
}

// dropThread leaves the calling thread with the capabilities of keep that it
// has, and lets them survive the execution of a program by any user.
func dropThread(keep capSet) error {
	_, _, permitted, err := capget()
	if err != nil {
		return err
	}
	keep &= permitted
	// Root gets what is in the bounding set when it executes a program. Not
	// everybody may change it; no_new_privs does the same for those.
	for c := 0; c <= unix.CAP_LAST_CAP; c++ {
		if keep&caps(c) == 0 {
			unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if err := capset(keep); err != nil {
		return err
	}
	// Others than root keep over an execution what is ambient.
	for c := 0; c <= unix.CAP_LAST_CAP; c++ {
		if keep&caps(c) != 0 {
			unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, uintptr(c), 0, 0)
		}
	}
	return nil
}

// capget returns the calling thread's sets.
func capget() (effective, inheritable, permitted capSet, err error) {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var d [2]unix.CapUserData
	if err := unix.Capget(&hdr, &d[0]); err != nil {
		return 0, 0, 0, fmt.Errorf("capget: %w", err)
	}
	join := func(low, high uint32) capSet { return capSet(low) | capSet(high)<<32 }
	return join(d[0].Effective, d[1].Effective), join(d[0].Inheritable, d[1].Inheritable), join(d[0].Permitted, d[1].Permitted), nil
}

// capset makes s the calling thread's effective, permitted and inheritable
// set. What is ambient but not in s goes too.
func capset(s capSet) error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	low := unix.CapUserData{Effective: uint32(s), Permitted: uint32(s), Inheritable: uint32(s)}
	high := unix.CapUserData{Effective: uint32(s >> 32), Permitted: uint32(s >> 32), Inheritable: uint32(s >> 32)}
	d := [2]unix.CapUserData{low, high}
	if err := unix.Capset(&hdr, &d[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	return nil
}

// confineCapture keeps what a capture needs, also to open its device again,
// and, when ports below 1024 are served, what they need.
func confineCapture(lowPorts bool) error {
	keep := caps(unix.CAP_NET_RAW)
	if lowPorts {
		keep |= caps(unix.CAP_NET_BIND_SERVICE)
	}
	return confine(keep)
}
