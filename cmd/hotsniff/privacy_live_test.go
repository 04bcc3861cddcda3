package main

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsniff/hotsniff/hotlist"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

// privacyMode is one way to hide a name, and what is shown in its place.
type privacyMode struct {
	name, shown string
	flags       []string
}

const privacySecret = "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"

// privacyModes returns every mode, for a key of which user: may be seen.
func privacyModes(t *testing.T, key string) []privacyMode {
	t.Helper()
	secret := write(t, "privacy.key", privacySecret)
	rewrite := write(t, "rewrite.yml", "privacy:\n  keys: pattern\n  rewrite:\n    - match: 'user:\\w+'\n      to: 'user:*'\n")
	mac := hmac.New(sha256.New, []byte(privacySecret))
	mac.Write([]byte(key))
	return []privacyMode{
		{"pattern", "user:alice:*", []string{"--privacy.keys=pattern"}},
		{"rewrite", "user:*:*", []string{"--config.file=" + rewrite}},
		{"hash", "#" + hex.EncodeToString(mac.Sum(nil))[:16], []string{"--privacy.keys=hash", "--privacy.key-file=" + secret, "--privacy.clients=none"}},
		{"truncate", "user:a…", []string{"--privacy.keys=truncate", "--privacy.keep=6"}},
		{"deny", "(hidden)", []string{"--privacy.deny=other,user:*"}},
	}
}

// aliceKey is a key with a person's name and number; aliceClear is what nobody
// may read of it in any mode, as it is and as base64 of the key.
const (
	aliceKey   = "user:alice:47114711"
	aliceClear = "47114711"
)

func checkHidden(t *testing.T, where, text string) {
	t.Helper()
	noSecret(t, where, text, []string{aliceClear, base64.StdEncoding.EncodeToString([]byte(aliceKey))})
}

func checkShown(t *testing.T, where, text, shown string) {
	t.Helper()
	checkHidden(t, where, text)
	if !strings.Contains(text, shown) {
		t.Errorf("%s does not show %q:\n%.600s", where, shown, text)
	}
}

// TestNoSurfaceShowsAClearName drives a key to the list and looks for its name
// on every surface of the daemon, in each mode; on the channel it is clear
// unless --publish.masked says otherwise.
func TestNoSurfaceShowsAClearName(t *testing.T) {
	for _, mode := range privacyModes(t, aliceKey) {
		for _, masked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, channel masked %v", mode.name, masked), func(t *testing.T) {
				t.Parallel()
				server := live(t)
				flags := append([]string{"--publish.redis-url", "redis://" + server.Addr(), "--node", "n1", "--log.level=debug"}, mode.flags...)
				listed := aliceKey
				if masked {
					flags, listed = append(flags, "--publish.masked"), mode.shown
				}
				if mode.name == "deny" {
					listed = ""
				}
				p := startDaemon(t, server.Port, flags...)
				load(t, server, aliceKey)
				eventually(t, "the key is on the list", func() bool {
					body, err := p.get("/api/v1/hotkeys")
					return err == nil && strings.Contains(body, mode.shown) && strings.Contains(p.logText(), "key is hot")
				})
				checkWeb(t, p, mode)
				checkTop(t, p, mode)
				checkChannel(t, server, listed)
				p.stop(t, syscall.SIGTERM)
				checkShown(t, "the log", p.logText(), mode.shown)
			})
		}
	}
}

// checkWeb looks at everything that HTTP serves.
func checkWeb(t *testing.T, p *daemonProcess, mode privacyMode) {
	t.Helper()
	for _, path := range []string{"/metrics", "/api/v1/hotkeys", "/api/v1/hotkeys?window=5s", "/api/v1/status", "/", "/page.js"} {
		body, err := p.get(path)
		if err != nil {
			t.Error(err)
		}
		if checkHidden(t, path, body); path == "/metrics" || strings.Contains(path, "hotkeys") {
			checkShown(t, path, body, mode.shown)
		}
		if mode.name == "hash" && strings.Contains(path, "hotkeys") && strings.Contains(body, "127.0.0.1") {
			t.Errorf("%s shows a client's address", path)
		}
	}
	checkShown(t, "the stream", stream(t, p, mode.shown), mode.shown)
}

// stream reads the events of the page until one holds want, or for some frames.
func stream(t *testing.T, p *daemonProcess, want string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", p.url+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var text strings.Builder
	for lines := bufio.NewScanner(resp.Body); lines.Scan() && !strings.Contains(text.String(), want); {
		text.WriteString(lines.Text() + "\n")
	}
	return text.String()
}

// checkTop looks at what hotsniff top makes of the daemon.
func checkTop(t *testing.T, p *daemonProcess, mode privacyMode) {
	t.Helper()
	code, out, errOut := hotsniff(t, "", "top", "--url", p.url, "--once")
	if code != 0 || errOut != "" {
		t.Errorf("top: got %d, %q", code, errOut)
	}
	shown := mode.shown
	if mode.name == "truncate" {
		shown = "user:a" // the locale of the test may lack the dots
	}
	checkShown(t, "top --once", out, shown)
}

// checkChannel wants one name on the retained list and from watch, or none.
func checkChannel(t *testing.T, server *testkit.Redis, want string) {
	t.Helper()
	eventually(t, "the list is retained", func() bool {
		names, err := listed(t, server)
		return err == nil && names == want
	})
	for _, format := range []string{"json", "table"} {
		code, out, errOut := hotsniff(t, "", "watch", "--redis-url", "redis://"+server.Addr(), "--once", "--format", format)
		if code != 0 || errOut != "" {
			t.Errorf("watch: got %d, %q", code, errOut)
		}
		if want != aliceKey {
			checkHidden(t, "watch", out)
		}
		if !strings.Contains(out, want) {
			t.Errorf("watch --format %s does not show %q:\n%s", format, want, out)
		}
	}
}

// listed returns the names on the retained list.
func listed(t *testing.T, server *testkit.Redis) (names string, err error) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer c.Close()
	text, err := c.Get(t.Context(), "hotsniff:list:n1").Bytes()
	if err != nil {
		return "", err
	}
	l, err := hotlist.Decode(text)
	if err != nil {
		return "", err
	}
	for _, e := range l.Entries {
		names += e.Key
	}
	return names, nil
}

// load makes key hot for a few seconds.
func load(t *testing.T, server *testkit.Redis, key string) {
	t.Helper()
	w := &testkit.Workload{Addr: server.Addr(), Conns: 2, Rate: 500, HotKey: key,
		Share: func(time.Duration) float64 { return 0.9 }, Keys: 1000, Seed: 1}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// aliceFile is a capture in which aliceKey is hot from begin to end.
func aliceFile(t *testing.T) string {
	t.Helper()
	return timelineFile(t, "config:global", aliceKey)
}

func TestReadMasksReportAndEvents(t *testing.T) {
	file := aliceFile(t)
	for _, mode := range privacyModes(t, aliceKey) {
		html := filepath.Join(t.TempDir(), "report.html")
		for _, args := range [][]string{{"--format=json"}, {"--format=csv"}, {"--format=table"}, {"--events"}, {"--html", html}} {
			args = slices.Concat([]string{"read"}, args, mode.flags, []string{file})
			code, out, errOut := hotsniff(t, "", args...)
			if code != 0 || errOut != "" {
				t.Fatalf("%v: got %d, %q", args, code, errOut)
			}
			checkShown(t, strings.Join(args, " "), out, mode.shown)
		}
		text, err := os.ReadFile(html)
		if err != nil {
			t.Fatal(err)
		}
		checkShown(t, mode.name+": the page", string(text), mode.shown)
	}
}

func TestTopMasks(t *testing.T) {
	file := aliceFile(t)
	for _, mode := range privacyModes(t, aliceKey) {
		for _, args := range [][]string{{"--once"}, {"--format=json"}, {"--format=csv"}} {
			args = slices.Concat([]string{"top", "--read", file, "--speed=max"}, args, mode.flags)
			code, out, errOut := hotsniff(t, "", args...)
			if code != 0 || errOut != "" {
				t.Fatalf("%v: got %d, %q", args, code, errOut)
			}
			checkShown(t, strings.Join(args, " "), out, strings.TrimSuffix(mode.shown, "…"))
		}
	}
}

func TestPrivacyMistakesAreUsage(t *testing.T) {
	file := timelineFile(t)
	short := write(t, "short.key", "x")
	for _, c := range []struct {
		flags []string
		code  int
		want  string
	}{
		{[]string{"--privacy.keys=hash"}, exitUsage, "hotsniff: --privacy.keys=hash needs --privacy.key-file\n"},
		{[]string{"--privacy.keys=hash", "--privacy.key-file=" + short}, exitUsage, "hotsniff: --privacy.keys=hash: the key file needs at least 16 bytes, it has 1\n"},
		{[]string{"--privacy.keys=hash", "--privacy.key-file=/nonexistent"}, exitFailure, "hotsniff: open /nonexistent: no such file or directory\n"},
		{[]string{"--privacy.keys=truncate", "--privacy.keep=0"}, exitUsage, "hotsniff: --privacy.keep: want 1 to 128, not 0\n"},
	} {
		code, out, errOut := hotsniff(t, "", append([]string{"read", file}, c.flags...)...)
		if code != c.code || out != "" || !strings.HasPrefix(errOut, c.want) {
			t.Errorf("%v: got %d, %q, %q; want %d, %q", c.flags, code, out, errOut, c.code, c.want)
		}
	}
}
