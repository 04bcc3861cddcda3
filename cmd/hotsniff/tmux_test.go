package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hotsniff/hotsniff/internal/testkit"
)

// tmux is a real terminal with a program in it.
type tmux struct {
	t      *testing.T
	socket string
	pid    string // file with the process number of the program
}

// startTmux runs a command line of the shell in a terminal of so many cells.
// When it has ended the terminal stays, and shows its exit code.
func startTmux(t *testing.T, width, height int, env []string, args ...string) *tmux {
	t.Helper()
	testkit.Program(t, "tmux")
	dir := t.TempDir()
	x := &tmux{t, filepath.Join(dir, "tmux"), filepath.Join(dir, "pid")}
	args = append([]string{"sh", "-c", `echo $$ >"$0"; exec "$@"`, x.pid, "env"}, append(env, args...)...)
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	line := strings.Join(quoted, " ") + "; echo \"[exit $?]\"; exec sleep 600"
	x.run("-f", "/dev/null", "new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height), "sh", "-c", line)
	t.Cleanup(func() { exec.Command("tmux", "-S", x.socket, "kill-server").Run() })
	return x
}

func (x *tmux) run(args ...string) string {
	x.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", x.socket, "-u"}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TMUX=", "SHELL=/bin/sh")
	out, err := cmd.CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// keys types keys by their tmux names.
func (x *tmux) keys(keys ...string) {
	x.t.Helper()
	for _, k := range keys {
		x.run("send-keys", k)
	}
}

// screen is what a user sees.
func (x *tmux) screen() string { return x.run("capture-pane", "-p") }

// sees waits until the screen has every text.
func (x *tmux) sees(texts ...string) string {
	x.t.Helper()
	return x.until(strings.Join(texts, ", "), func(s string) bool {
		for _, text := range texts {
			if !strings.Contains(s, text) {
				return false
			}
		}
		return true
	})
}

func (x *tmux) until(what string, ok func(screen string) bool) string {
	x.t.Helper()
	var s string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if s = x.screen(); ok(s) {
			return s
		}
	}
	x.t.Fatalf("never on the screen: %s. It shows\n%s", what, s)
	return s
}
