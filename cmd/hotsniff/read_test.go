package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotsniff/hotsniff/internal/report"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

// corpusFile returns a capture of the corpus by name.
func corpusFile(t *testing.T, name string) testkit.Capture {
	t.Helper()
	all, err := testkit.Corpus()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(c testkit.Capture) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("%s is not in the corpus", name)
	}
	return all[i]
}

// readJSON runs `hotsniff read --format json` and wants it to succeed.
func readJSON(t *testing.T, stdin string, args ...string) report.Report {
	t.Helper()
	code, out, errOut := hotsniff(t, stdin, append([]string{"read", "--format", "json"}, args...)...)
	if code != 0 {
		t.Fatalf("got code %d: %s", code, errOut)
	}
	return parseReport(t, out)
}

func parseReport(t *testing.T, text string) report.Report {
	t.Helper()
	var r report.Report
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return r
}

func TestReadReportsWhatTheTruthSays(t *testing.T) {
	for _, name := range []string{"go-redis.pcap", "go-redis.pcapng", "ioredis.pcap", "any-sll2.pcap", "raw-ip.pcap", "nano.pcap"} {
		t.Run(name, func(t *testing.T) {
			c := corpusFile(t, name)
			r := readJSON(t, "", "--top", "0", c.Path)
			if r.Schema != report.Schema || int(r.Requests) != c.Truth.Requests || int(r.Accesses) != c.Truth.KeyAccesses || len(r.Keys) != c.Truth.DistinctKeys {
				t.Errorf("got %s, %d requests, %d accesses, %d keys; want %d, %d, %d", r.Schema, r.Requests, r.Accesses, len(r.Keys),
					c.Truth.Requests, c.Truth.KeyAccesses, c.Truth.DistinctKeys)
			}
			sum := uint64(0)
			for i, k := range r.Keys {
				sum += k.Reads + k.Writes
				if i > 0 && r.Keys[i-1].Accesses < k.Accesses {
					t.Errorf("%s is not in order", k.Key)
				}
				if k.AccessesError != 0 || k.ShareLow > k.Share || k.ShareHigh < k.Share {
					t.Errorf("%s: share %v outside [%v, %v], error %d", k.Key, k.Share, k.ShareLow, k.ShareHigh, k.AccessesError)
				}
			}
			if sum != r.Accesses {
				t.Errorf("reads and writes add up to %d; want %d", sum, r.Accesses)
			}
		})
	}
}

func TestReadTakesStandardInputAndSeveralFiles(t *testing.T) {
	a, b := corpusFile(t, "go-redis.pcap"), corpusFile(t, "ioredis.pcap")
	data, err := os.ReadFile(a.Path)
	if err != nil {
		t.Fatal(err)
	}
	one := readJSON(t, string(data), "-")
	if int(one.Requests) != a.Truth.Requests {
		t.Errorf("stdin: got %d requests; want %d", one.Requests, a.Truth.Requests)
	}
	both := readJSON(t, "", b.Path, a.Path)
	if want := a.Truth.Requests + b.Truth.Requests; int(both.Requests) != want || len(both.Sources) != 2 {
		t.Errorf("two files: got %d requests of %v; want %d", both.Requests, both.Sources, want)
	}
}

func TestReadTopLimitsKeysOnly(t *testing.T) {
	c := corpusFile(t, "go-redis.pcap")
	r := readJSON(t, "", "--top", "3", c.Path)
	if len(r.Keys) != 3 || int(r.Accesses) != c.Truth.KeyAccesses {
		t.Errorf("got %d keys, %d accesses; want 3, %d", len(r.Keys), r.Accesses, c.Truth.KeyAccesses)
	}
}

func TestReadKeepsWhatStandsBeforeDamage(t *testing.T) {
	for _, name := range []string{"go-redis.pcap", "go-redis.pcapng"} {
		t.Run(name, func(t *testing.T) {
			c := corpusFile(t, name)
			data, err := os.ReadFile(c.Path)
			if err != nil {
				t.Fatal(err)
			}
			cut := filepath.Join(t.TempDir(), "cut")
			if err := os.WriteFile(cut, data[:len(data)*2/3], 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, errOut := hotsniff(t, "", "read", "--format", "json", cut)
			if code != 1 || !strings.HasPrefix(errOut, "hotsniff: read "+cut+": truncated at byte ") || strings.Count(errOut, "hotsniff: ") != 1 {
				t.Errorf("got code %d, %q; want 1 and the byte", code, errOut)
			}
			if r := parseReport(t, out); r.Requests == 0 || int(r.Requests) >= c.Truth.Requests {
				t.Errorf("got %d requests; want some of %d", r.Requests, c.Truth.Requests)
			}
		})
	}
}

// eventLine is hotsniff.event/v1 as the contract has it.
type eventLine struct {
	Schema            string    `json:"schema"`
	At                time.Time `json:"at"`
	Event             string    `json:"event"`
	Port              int       `json:"port"`
	Key               string    `json:"key"`
	KeyBase64         string    `json:"key_base64"`
	Share             float64   `json:"share"`
	ShareLow          float64   `json:"share_low"`
	ShareHigh         float64   `json:"share_high"`
	AccessesPerSecond float64   `json:"accesses_per_second"`
	WindowSeconds     int       `json:"window_seconds"`
	Node              string    `json:"node"`
}

func readEvents(t *testing.T, path string) (lines []eventLine, text string) {
	t.Helper()
	code, out, errOut := hotsniff(t, "", "read", "--events", "--node", "n", path)
	if code != 0 {
		t.Fatalf("got code %d: %s", code, errOut)
	}
	for line := range strings.Lines(out) {
		var e eventLine
		dec := json.NewDecoder(strings.NewReader(line))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&e); err != nil || e.Schema != "hotsniff.event/v1" || e.Node != "n" {
			t.Fatalf("%v in %s", err, line)
		}
		lines = append(lines, e)
	}
	return lines, out
}

// TestEventsFollowTheTimeline: four minutes with a key that is hot in the
// second one and another that has 6 % all the time.
func TestEventsFollowTheTimeline(t *testing.T) {
	path := timelineFile(t)
	start := readJSON(t, "", path).From
	events, text := readEvents(t, path)
	var promo []string
	steady := 0
	for _, e := range events {
		at := e.At.Sub(start)
		switch e.Key {
		case "promo:banner":
			promo = append(promo, e.Event)
			if e.Event == "hot" && (at < 60*time.Second || at > 72*time.Second) || e.Event == "cooling" && (at < 120*time.Second || at > 182*time.Second) {
				t.Errorf("promo:banner is %s at %v", e.Event, at)
			}
		case "config:global":
			steady++
			if e.Event != "hot" || at > 45*time.Second {
				t.Errorf("config:global is %s at %v; want hot within 45 s and nothing more", e.Event, at)
			}
		default:
			t.Errorf("%s is listed and was never hot", e.Key)
		}
	}
	if !slices.Equal(promo, []string{"hot", "cooling", "gone"}) && !slices.Equal(promo, []string{"hot", "cooling"}) || steady != 1 {
		t.Errorf("got %v for promo:banner and %d for config:global", promo, steady)
	}
	if _, again := readEvents(t, path); again != text {
		t.Error("a second replay gives other bytes")
	}
}

// TestNoOutputShowsASecret greps everything that reading a capture full of
// passwords prints.
func TestNoOutputShowsASecret(t *testing.T) {
	c := corpusFile(t, "auth-secrets.pcap")
	if len(c.Truth.MustNotAppear) < 5 {
		t.Fatal("the truth names no secrets")
	}
	for _, args := range [][]string{
		{"read", c.Path}, {"read", "--format", "json", "--top", "0", c.Path}, {"read", "--format", "csv", c.Path},
		{"read", "--events", c.Path}, {"read", "--window", "60s", "--format", "json", c.Path},
		{"read", "--threshold", "0.001", "--events", c.Path}, {"run", c.Path}, {"check-config", c.Path}, {"version"},
		{"read", "--commands.file", c.Path, c.Path}, {"--config.file", c.Path, "read", c.Path},
	} {
		code, out, errOut := hotsniff(t, "", args...)
		if out+errOut == "" && code != 0 {
			t.Errorf("%v: got code %d and no word", args, code)
		}
		noSecret(t, strings.Join(args, " "), out+errOut, c.Truth.MustNotAppear)
	}
}

func noSecret(t *testing.T, where, text string, secrets []string) {
	t.Helper()
	for _, s := range secrets {
		if strings.Contains(text, strings.TrimSuffix(s, "*")) {
			t.Errorf("%s shows the secret %s…", where, s)
		}
	}
}
