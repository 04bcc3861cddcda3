package capture

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// corpusDir has the captures that the tests of several packages read.
var corpusDir = filepath.Join("..", "testdata", "captures")

// publicDir has public captures, which are not part of the project: they are
// read in place where they are.
var publicDir = filepath.Join("..", "..", "shared", "captures")

// captures lists the capture files of this package and of the corpus, and the
// public ones where they are.
func captures(t testing.TB) []string {
	t.Helper()
	var out []string
	for _, dir := range []string{"testdata", corpusDir, publicDir} {
		entries, err := os.ReadDir(dir)
		if err != nil && dir == publicDir {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".pcap") || strings.HasSuffix(e.Name(), ".pcapng") {
				out = append(out, filepath.Join(dir, e.Name()))
			}
		}
	}
	if len(out) < 20 {
		t.Fatalf("only %d capture files", len(out))
	}
	return out
}

// replay reads a capture into a collector. requestsOnly leaves out what the
// kernel filter of a live capture leaves out.
func replay(t *testing.T, path string, requestsOnly bool) (*collector, AssemblerStats) {
	t.Helper()
	ports, err := ParsePorts("6379-6390,7000-7010")
	if err != nil {
		t.Fatal(err)
	}
	src, err := OpenFiles([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := newCollector(t)
	a := NewAssembler[flowState](AssemblerConfig{Ports: ports}, c)
	var p Packet
	var s Segment
	for src.Next(&p) == nil {
		if Decode(&p, &s) != Decoded {
			continue
		}
		if requestsOnly && (!ports.Has(s.DstPort) || s.WireLen == 0 && s.Flags&(FlagSYN|FlagFIN|FlagRST) == 0) {
			continue
		}
		a.Add(&s)
	}
	a.Flush(p.T)
	return c, *a.Stats()
}

func TestCorpusFigures(t *testing.T) {
	for _, tt := range []struct {
		name              string
		opened            uint64
		bytes, duplicates uint64
		why               EndReason
	}{
		{"port-reuse.pcap", 4, 340, 0, EndRST},
		{"keepalive.pcap", 2, 1627, 30, EndFIN},
		{"iplen0.pcap", 1, 824, 0, EndFIN},
		{"null-bsd.pcap", 5, 452, 0, EndFIN},
		{"go-redis.pcapng", 3, 8694, 0, EndFIN},
		{"any-sll2.pcap", 4, 10218, 0, EndFIN},
	} {
		_, st := replay(t, filepath.Join("testdata", tt.name), false)
		if st.Opened != tt.opened || st.OpenedSyn != tt.opened || st.ClientBytes != tt.bytes || st.Duplicates != tt.duplicates ||
			st.Ended[tt.why] != tt.opened || st.Gaps+st.Cuts != 0 {
			t.Errorf("%s: %+v", tt.name, st)
		}
	}
}

// TestCorpusRequestsOnly: leaving the replies out changes no byte that is
// delivered, in any capture.
func TestCorpusRequestsOnly(t *testing.T) {
	for _, path := range captures(t) {
		both, _ := replay(t, path, false)
		one, _ := replay(t, path, true)
		for port, spans := range both.spans {
			if got, want := describe(one.spans[port]), describe(spans); got != want {
				t.Errorf("%s, port %d:\n requests only %s\n both          %s", filepath.Base(path), port, got, want)
			}
		}
	}
}

// TestCorpusDamageIsUndone: a capture that was reordered, repeated and merged,
// or whose segments were cut into small ones, gives the same bytes as the one it
// was made from.
func TestCorpusDamageIsUndone(t *testing.T) {
	for _, c := range []struct{ dir, damaged, original string }{
		{corpusDir, "split-bytes.pcap", "iplen0.pcap"},
		{publicDir, "reorder-dup.pcap", "hotmix-pipelined.pcap"},
	} {
		damaged := c.damaged
		if _, err := os.Stat(filepath.Join(c.dir, damaged)); err != nil && c.dir == publicDir {
			continue
		}
		got, st := replay(t, filepath.Join(c.dir, damaged), false)
		want, _ := replay(t, filepath.Join(c.dir, c.original), false)
		if st.Gaps != 0 || len(got.spans) != len(want.spans) {
			t.Errorf("%s: %d connections, %+v", damaged, len(got.spans), st)
		}
		for port, spans := range want.spans {
			if g := got.spans[port]; len(g) != 1 || string(g[0].b) != string(spans[0].b) {
				t.Errorf("%s, port %d: the bytes differ", damaged, port)
			}
		}
	}
}
