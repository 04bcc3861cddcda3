package report

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func sample() *Report {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return &Report{
		Schema: Schema, Node: "n", Sources: []string{"a.pcap"}, WindowSeconds: 60, SampleEvery: 1,
		Requests: 3, Accesses: 4, SampledAccesses: 4, DistinctKeys: 2,
		Keys: []Key{
			{Key: "a\x1b[31m", Port: 6379, State: "hot", Since: &since, Share: .75, ShareLow: .5, ShareHigh: .9, Accesses: 3,
				AccessesPerSecond: .05, Reads: 2, Writes: 1, RequestBytes: 2048, Clients: 1,
				TopClient: &TopClient{"10.0.0.7", 1}, Commands: map[string]uint64{"SET": 1, "GET": 2}},
			{Key: "", Port: 6379, State: "normal", Share: .25, Accesses: 1, AccessesError: 1, Commands: map[string]uint64{"GET": 1}},
		},
		Capture: Capture{Connections: 2, EncryptedConnections: 1, DecodeErrors: map[string]uint64{"bulk length": 2, "zero": 0}},
	}
}

func TestTableShowsKeysAndWhatWasNotSeen(t *testing.T) {
	var b bytes.Buffer
	if err := sample().WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	out := b.String()
	for _, want := range []string{
		`a\x1b[31m`, "75.00%", "50.00%", "90.00%", "2.0 KiB", "10.0.0.7 100%", "GET", `""`, "1 (-1)",
		"3 requests, 4 key accesses of about 2 keys in 1m0s at a.pcap",
		"1 of 2 connections encrypted; not decoded: bulk length 2;",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if strings.ContainsRune(out, 0x1b) {
		t.Errorf("an escape character reached the table: %q", out)
	}
}

func TestCSVHasOneRowAKey(t *testing.T) {
	var b bytes.Buffer
	if err := sample().WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("got %d lines; want 3:\n%s", len(lines), b.String())
	}
	if want := "key,port,state,share,low,high,accesses,per_second,reads,writes,request_bytes,reply_bytes,clients,top_client,command"; lines[0] != want {
		t.Errorf("got %s; want %s", lines[0], want)
	}
}

func TestEscapeKeyKeepsValidKeysAndMarksOthers(t *testing.T) {
	f := func(in, text string, marked bool) {
		t.Helper()
		got, b64 := EscapeKey([]byte(in))
		if got != text || (b64 != "") != marked {
			t.Errorf("EscapeKey(%q) = %q, %q; want %q, marked %v", in, got, b64, text, marked)
		}
		if marked {
			raw, err := base64.StdEncoding.DecodeString(b64)
			if err != nil || string(raw) != in {
				t.Errorf("base64 of %q gives %q, %v", in, raw, err)
			}
		}
	}
	f("plain", "plain", false)
	f("", "", false)
	f("käse:\n", "käse:\n", false)
	f("a\xff\x00b", "a\\xff\x00b", true)
	f("\xe4\xb8", `\xe4\xb8`, true)
}

func TestJSONHoldsNothingThatATerminalObeys(t *testing.T) {
	in := map[string]string{"k": "a\x1b\u009b\u202e\x7f\U000e0001z<é"}
	var b bytes.Buffer
	if err := WriteJSON(&b, in, ""); err != nil {
		t.Fatal(err)
	}
	if want := "{\"k\":\"a\\u001b\\u009b\\u202e\\u007f\\udb40\\udc01z<é\"}\n"; b.String() != want {
		t.Errorf("got %q; want %q", b.String(), want)
	}
	var out map[string]string
	if err := json.Unmarshal(b.Bytes(), &out); err != nil || out["k"] != in["k"] {
		t.Errorf("read back %q, %v; want %q", out["k"], err, in["k"])
	}
}

func FuzzPrintableKey(f *testing.F) {
	for _, s := range []string{"", "a", "\x1b[2J", "\u202egnp", "a\u200bb", "e\u0301", "\xff\xfe", "\uFFFD", strings.Repeat("x", 100)} {
		f.Add(s, 20)
	}
	f.Fuzz(func(t *testing.T, s string, width int) {
		out := PrintableKey(s, width)
		if !utf8.ValidString(out) {
			t.Fatalf("%q is not valid UTF-8", out)
		}
		for _, r := range out {
			if !unicode.IsPrint(r) || unicode.Is(unicode.Mn, r) {
				t.Fatalf("%q holds %U", out, r)
			}
		}
		if width > 2 && utf8.RuneCountInString(out) > max(width, 2) {
			t.Fatalf("%q is longer than %d", out, width)
		}
	})
}
