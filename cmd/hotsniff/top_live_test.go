package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/hotsniff/hotsniff/internal/report"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

// row returns the line of the table of a key, "" if there is none.
func row(screen, key string) string {
	for _, l := range strings.Split(screen, "\n") {
		if f := strings.Fields(strings.TrimLeft(l, "▸> ")); len(f) > 1 && f[0] == key {
			return l
		}
	}
	return ""
}

// starLoad drives a Redis until the test ends: star has 30 % of the accesses.
func starLoad(t *testing.T, redis *testkit.Redis) {
	t.Helper()
	w := &testkit.Workload{Addr: redis.Addr(), Conns: 4, Pipeline: 2, Rate: 2000, HotKey: "star",
		Share: func(time.Duration) float64 { return 0.3 }, Keys: 500, Seed: 3}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

func topBinary(t *testing.T) string {
	t.Helper()
	bin, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// TestTopInATerminal is what a person does at night, in a real terminal, with a
// real server and a real capture.
func TestTopInATerminal(t *testing.T) {
	redis := live(t)
	starLoad(t, redis)
	x := startTmux(t, 80, 24, []string{"LC_ALL=C.UTF-8", "TERM=screen-256color"}, topBinary(t), "top", "--interface", "lo", "--port", strconv.Itoa(redis.Port),
		"--node", "night", "--interval", "250ms")
	s := x.sees("hotsniff  night  lo", "KEY", "SHARE▾", "star", "hot", "? help", "q quit", "0 dropped")
	if got := row(s, "star"); !strings.HasPrefix(got, "▸star") || !strings.Contains(got, "%") {
		t.Errorf("the hot key is not the first row: %q in\n%s", got, s)
	}
	if got := len(strings.Split(strings.TrimRight(s, "\n"), "\n")); got != 24 {
		t.Errorf("the screen has %d lines; want 24", got)
	}

	x.keys("w")
	x.until("the window of 5 s", func(s string) bool { return strings.Contains(s, "of 5s ") || strings.Contains(s, "window 5s ") })
	x.keys("w")
	x.until("the window of 60 s", func(s string) bool { return strings.Contains(s, "of 60s ") || strings.Contains(s, "window 60s ") })

	x.keys("1")
	x.sees("KEY▾", "item:1 ")
	x.keys("2")
	x.sees("SHARE▾", "▸star")

	x.keys("/", "s", "t", "a", "r")
	x.until("one row that the filter lets through", func(s string) bool {
		return strings.Contains(s, "filter star") && row(s, "star") != "" && !strings.Contains(s, "item:")
	})
	x.keys("Enter")
	x.sees("esc clear", "q quit")
	x.keys("Escape")
	x.sees("item:1 ")

	x.keys("Space")
	paused := x.sees("PAUSED")
	time.Sleep(600 * time.Millisecond) // two samples go by
	if again := x.screen(); again != paused {
		t.Errorf("the paused screen changed:\n%s\nto\n%s", paused, again)
	}
	x.keys("Space")
	x.until("no more pause", func(s string) bool { return !strings.Contains(s, "PAUSED") })

	x.keys("f")
	x.sees("FROZEN")
	x.keys("f", "Enter")
	x.sees("surely between", "GET", "127.0.0.1", "last 60s", "esc back")
	x.keys("Escape") // a key of its own: with one that follows at once it is Alt
	x.sees("SHARE▾")
	x.keys("?")
	x.sees("freeze the order", "any key")
	x.keys("x")
	x.sees("SHARE▾")

	x.run("resize-window", "-x", "200", "-y", "50")
	x.sees("TOP CLIENT", "COMMAND", "BOUNDS", "LAST 60s")
	x.run("resize-window", "-x", "40", "-y", "10")
	x.until("the narrow table", func(s string) bool { return row(s, "star") != "" && !strings.Contains(s, "TOP CLIENT") })
	x.run("resize-window", "-x", "80", "-y", "24")
	x.sees("CLNT", "B/S")

	x.keys("q")
	s = x.sees("[exit 0]")
	if strings.Contains(s, "SHARE") || strings.Contains(s, "hotsniff") {
		t.Errorf("the screen of before is not back:\n%s", s)
	}
}

// TestTopShowsHostileKeysInATerminal: keys that would clear the screen, set its
// title, move the cursor or mix up the row, through a real server.
func TestTopShowsHostileKeysInATerminal(t *testing.T) {
	redis := live(t)
	x := startTmux(t, 80, 24, []string{"LC_ALL=C.UTF-8"}, topBinary(t), "top", "--interface", "lo", "--port", strconv.Itoa(redis.Port), "--interval", "250ms")
	x.sees("no packet came to the port")
	title := x.run("display-message", "-p", "#{pane_title}")
	keys := []string{"\x1b[2J\x1b[H", "\x1b]2;owned\a", "a\r\nb", "\u202egnp", "x", "漢字", "👍🏽", "e\u0301", "שלום", "\xff\x00", "", strings.Repeat("k", 10000)}
	want := []string{`\x1b[2J\x1b[H`, `\x1b]2;owned\x07`, `a\x0d\x0ab`, `\u{202e}gnp`, "x", "漢字", `👍\u{1f3fd}`, `e\u{301}`, `\u{5e9}`, `\xff\x00`, `""`, "kkkkk…"}
	for i, k := range keys {
		for range len(keys) - i { // more of the first, so that each has a row of its own
			if _, err := testkit.Ask(redis.Addr(), "GET", k); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := x.sees(append(want, "100/0")...)
	for _, l := range strings.Split(s, "\n")[4:16] {
		// In each row what follows the key stands below its title, in cells.
		before, _, ok := strings.Cut(l, "%")
		if title := strings.Split(s, "\n")[3]; !ok || ansi.StringWidth(before) != ansi.StringWidth(title[:strings.Index(title, "▾")]) {
			t.Errorf("the share of %q is not below its title in\n%s", l, s)
		}
	}
	if got := x.run("display-message", "-p", "#{pane_title}"); got != title {
		t.Errorf("a key set the title to %q", got)
	}
	x.keys("q")
	x.sees("[exit 0]")
}

// TestTopRestoresTheTerminalWhenItIsAskedToEnd: a signal ends it as q does.
func TestTopRestoresTheTerminalWhenItIsAskedToEnd(t *testing.T) {
	redis := live(t)
	starLoad(t, redis)
	x := startTmux(t, 80, 24, []string{"LC_ALL=C", "NO_COLOR=1", "TERM=screen"}, topBinary(t), "top", "--interface", "lo", "--port", strconv.Itoa(redis.Port), "--interval", "250ms")
	s := x.sees("SHAREv", ">star", "hot")
	for _, r := range s {
		if r > 0x7e {
			t.Fatalf("%q on the screen of an ASCII locale:\n%s", r, s)
		}
	}
	colour := x.run("capture-pane", "-p", "-e")
	for _, bad := range []string{"\x1b[31m", "\x1b[33m", "\x1b[36m", "\x1b[1;31m", "38;"} {
		if strings.Contains(colour, bad) {
			t.Errorf("%q on the screen in spite of NO_COLOR", bad)
		}
	}
	text, err := os.ReadFile(x.pid)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	process, _ := os.FindProcess(pid)
	process.Signal(os.Interrupt)
	x.sees("[exit 0]")
}

// TestTopOfADaemon looks at a running daemon with TLS and a password, and says
// when it is gone.
func TestTopOfADaemon(t *testing.T) {
	redis := live(t)
	starLoad(t, redis)
	dir := t.TempDir()
	certificate(t, dir)
	config, ca := filepath.Join(dir, "web.yml"), filepath.Join(dir, "cert.pem")
	text := fmt.Sprintf("tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\nbasic_auth_users:\n  night: '%s'\n", passwordHash)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	web, err := testkit.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr := "127.0.0.1:" + strconv.Itoa(web)
	daemon := exec.Command(topBinary(t), "run", "--interface", "lo", "--port", strconv.Itoa(redis.Port), "--web.listen-address", addr, "--web.config.file", config)
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { daemon.Process.Kill(); daemon.Wait() })
	address := "https://night:correct%20horse@" + addr
	eventually(t, "the daemon answers", func() bool {
		code, _, _ := hotsniff(t, "", "top", "--once", "--url", address, "--ca-file", ca)
		return code == 0
	})

	fails := func(what, want string, args ...string) {
		t.Helper()
		code, out, errOut := hotsniff(t, "", append([]string{"top", "--once"}, args...)...)
		if code != 1 || out != "" || !strings.HasPrefix(errOut, "hotsniff: ") || !strings.Contains(errOut, want) || !strings.Contains(errOut, "\nhint: ") {
			t.Errorf("%s: got %d, %q, %q; want 1, %q and a hint", what, code, out, errOut, want)
		}
		if strings.Contains(errOut, "horse") {
			t.Errorf("%s: %q shows the password", what, errOut)
		}
	}
	fails("no password", "hint: the daemon wants a password", "--url", "https://"+addr, "--ca-file", ca)
	fails("a wrong password", "401", "--url", "https://night:wrong-horse@"+addr, "--ca-file", ca)
	fails("no authority", "certificate", "--url", address)
	fails("no TLS", "400", "--url", "http://night:correct%20horse@"+addr)

	x := startTmux(t, 80, 24, []string{"LC_ALL=C.UTF-8"}, topBinary(t), "top", "--url", address, "--ca-file", ca, "--interval", "250ms")
	s := x.sees("▸star", "hot", "https://"+addr)
	if strings.Contains(s, "horse") {
		t.Errorf("the password is on the screen:\n%s", s)
	}
	daemon.Process.Kill()
	s = x.sees("not up to date", "▸star")
	if strings.Contains(s, "horse") {
		t.Errorf("the password is on the screen:\n%s", s)
	}
	x.keys("q")
	x.sees("[exit 0]")
	fails("a daemon that is gone", "connect", "--url", address, "--ca-file", ca)
}

// TestTopInScripts: one frame, JSON lines and CSV of an own capture.
func TestTopInScripts(t *testing.T) {
	redis := live(t)
	starLoad(t, redis)
	bin, port := topBinary(t), strconv.Itoa(redis.Port)
	once := exec.Command(bin, "top", "--interface", "lo", "--port", port, "--once", "--wait", "2s", "--interval", "250ms")
	out, err := once.Output()
	if err != nil || row(string(out), "star") == "" || bytes.ContainsRune(out, 0x1b) {
		t.Errorf("--once: %v, got\n%s\nwant a frame of plain text with star", err, out)
	}
	// A pipe whose reader has seen enough ends it.
	pipe := exec.Command("bash", "-c", fmt.Sprintf("%q top --interface lo --port %s --format json --interval 250ms | head -n 3; echo ${PIPESTATUS[0]} >&2", bin, port))
	var status strings.Builder
	pipe.Stderr = &status
	out, err = pipe.Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(lines) != 3 || strings.TrimSpace(status.String()) != "141" {
		t.Fatalf("--format json | head -n 3: %v, %d lines, %q; want 3 lines and the end by SIGPIPE (141)", err, len(lines), status.String())
	}
	for _, l := range lines {
		var r report.Report
		if err := json.Unmarshal([]byte(l), &r); err != nil || r.Schema != report.Schema {
			t.Errorf("%q is no report: %v", l, err)
		}
	}
	pipe = exec.Command("bash", "-c", fmt.Sprintf("%q top --interface lo --port %s --window 5s --top 5 --format csv --interval 250ms | head -n 12", bin, port))
	if out, err = pipe.Output(); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 12 || rows[0][0] != "time" || rows[0][1] != "key" {
		t.Fatalf("--format csv: %v, %d rows\n%s", err, len(rows), out)
	}
	for _, r := range rows[1:] {
		if _, err := time.Parse(time.RFC3339Nano, r[0]); err != nil {
			t.Errorf("%v has no time", r)
		}
	}
}

// TestTopWithoutRightsSaysWhatToDo runs it as a user who may not capture.
func TestTopWithoutRightsSaysWhatToDo(t *testing.T) {
	bin := topBinary(t)
	dir := t.TempDir()
	copied := filepath.Join(dir, "hotsniff") // where nobody else could read it
	data, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, data, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(copied, "top", "--once")
	if os.Getuid() == 0 {
		cmd = exec.Command(testkit.Program(t, "setpriv"), "--bounding-set", "-all", "--inh-caps", "-all", copied, "top", "--once")
	} else if testkit.CanCapture() {
		t.Skip("skipped: this user may capture")
	}
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("got %v; want exit 1", err)
	}
	if !strings.HasPrefix(errOut.String(), "hotsniff: ") || !strings.Contains(errOut.String(), "setcap cap_net_raw") || out.Len() > 0 {
		t.Errorf("got %q, %q; want the reason and how to mend it", out.String(), errOut.String())
	}
}

// TestTopReplaysAFileAtItsSpeed in a terminal: rows come, and the end is said.
// A file on standard input leaves the keyboard to the view.
func TestTopReplaysAFileAtItsSpeed(t *testing.T) {
	file := filepath.Join(testkit.Root(), "testdata", "captures", "hotmix-pipelined-snap96.pcap")
	env := []string{"LC_ALL=C.UTF-8"}
	x := startTmux(t, 100, 30, env, topBinary(t), "top", "--read", file, "--speed", "4x")
	x.sees("  hotmix-pipelined-snap96.pcap at 4x", "hot:{tag}:1", "end of the file")
	x.keys("q")
	x.sees("[exit 0]")
	x = startTmux(t, 100, 30, env, "sh", "-c", `exec "$0" top --read - --speed max <"$1"`, topBinary(t), file)
	x.sees("  - at max", "hot:{tag}:1", "end of the file")
	x.keys("q")
	x.sees("[exit 0]")
}
