package export

import (
	"fmt"
	"io"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/topk"
)

// snapshot is one port with the given keys, each with 1 % of 1,000 accesses.
func snapshot(keys ...string) *pipeline.Snapshot {
	slow := &topk.Snapshot{T: 60e9, WindowSeconds: 60, SampleEvery: 1, EventEvery: 1, Accesses: 1000, SampledAccesses: 1000}
	for _, k := range keys {
		slow.Keys = append(slow.Keys, topk.KeyStat{Key: []byte(k), KeyLen: int64(len(k)), Share: .01, ShareLow: .005, Accesses: 10, Rate: 1, Reads: 8, Writes: 2})
	}
	return &pipeline.Snapshot{T: 60e9, Started: 1, Ports: []pipeline.PortSnapshot{{Port: 6379, Slow: slow, Fast: slow, Requests: 1000, Accesses: 1000}}}
}

func options(s *pipeline.Snapshot) Options {
	latest := func() *pipeline.Snapshot { return s }
	return Options{Latest: latest, Monitor: NewMonitor(latest), Node: "n", Top: 20, Version: "1.2.3"}
}

func serve(t *testing.T, s *pipeline.Snapshot, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	NewHandler(options(s)).ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(body)
}

func TestHostileKeysAreLabels(t *testing.T) {
	long := strings.Repeat("x", 1000)
	code, body := serve(t, snapshot("plain", "bin\xff\x00", "new\nline", `quote"\`, "emoji😀", "rtl\u202egnp", "שלום", long, ""), "/metrics")
	if code != 200 {
		t.Fatalf("got %d: %s", code, body)
	}
	for _, want := range []string{
		`{key="plain",port="6379"} 0.01`, `{key="bin\\xff\\x00",port="6379"} 0.01`, `{key="new\\x0aline",port="6379"} 0.01`,
		`{key="quote\"\\",port="6379"} 0.01`, `{key="emoji😀",port="6379"} 0.01`, `{key="rtl\\u{202e}gnp",port="6379"} 0.01`,
		`{key="שלום",port="6379"} 0.01`, `{key="\"\"",port="6379"} 0.01`,
	} {
		if !strings.Contains(body, "hotsniff_key_share_ratio"+want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
	if strings.Contains(body, strings.Repeat("x", 129)) || !strings.Contains(body, "xxx…#") {
		t.Error("a long key is not cut with a hash")
	}
	if !utf8.ValidString(body) {
		t.Error("the metrics are not valid UTF-8")
	}
}

func TestKeyLabelStaysWithinItsBoundAndApart(t *testing.T) {
	f := func(a, b string) {
		t.Helper()
		x, y := keyLabel([]byte(a), int64(len(a))), keyLabel([]byte(b), int64(len(b)))
		if len(x) > maxLabelBytes || len(y) > maxLabelBytes || !utf8.ValidString(x) || x == y {
			t.Errorf("got %q, %q; want two valid labels of at most %d bytes", x, y, maxLabelBytes)
		}
	}
	f(strings.Repeat("a", 500), strings.Repeat("a", 501))
	f(strings.Repeat("ä", 500), strings.Repeat("ä", 499)+"b")
	f(strings.Repeat("\xff", 200), strings.Repeat("\xff", 201))
}

// TestKeysOfHalfAGigabyteStayApart: of such a key a prefix and the length are
// known, and the length is all that tells some from each other.
func TestKeysOfHalfAGigabyteStayApart(t *testing.T) {
	s := snapshot(strings.Repeat("x", topk.MaxKeyBytes), strings.Repeat("x", topk.MaxKeyBytes), strings.Repeat("x", topk.MaxKeyBytes))
	for i, n := range []int64{512 << 20, 512<<20 - 1, topk.MaxKeyBytes} {
		s.Ports[0].Slow.Keys[i].KeyLen, s.Ports[0].Slow.Keys[i].Truncated = n, n > topk.MaxKeyBytes
	}
	_, body := serve(t, s, "/metrics")
	labels := map[string]bool{}
	for _, m := range regexp.MustCompile(`hotsniff_key_share_ratio\{key="(x+…#[0-9a-f]{8})",port="6379"\} 0.01\n`).FindAllStringSubmatch(body, -1) {
		labels[m[1]] = len(m[1]) <= maxLabelBytes
	}
	if len(labels) != 3 {
		t.Errorf("got the rows %v; want three", labels)
	}
	for label, short := range labels {
		if !short {
			t.Errorf("%q is longer than %d bytes", label, maxLabelBytes)
		}
	}
}

func TestRowsWithOneLabelAreMerged(t *testing.T) {
	// The escape of a binary key is another key's text.
	code, body := serve(t, snapshot("a\xff", `a\xff`), "/metrics")
	if code != 200 || !strings.Contains(body, `hotsniff_key_share_ratio{key="a\\xff",port="6379"} 0.02`) {
		t.Errorf("got %d, not one row with the sum of shares", code)
	}
}

func TestSeriesAreBounded(t *testing.T) {
	var keys []string
	for i := range 500 {
		keys = append(keys, fmt.Sprint("k", i))
	}
	_, body := serve(t, snapshot(keys...), "/metrics")
	if n := strings.Count(body, "\nhotsniff_key_"); n > 20*9 {
		t.Errorf("got %d series of keys; want at most 20 x 9", n)
	}
}

func TestMetricsPassTheLinter(t *testing.T) {
	o := options(snapshot("a"))
	reg := registry(o)
	reg.MustRegister(collector{o})
	problems, err := testutil.GatherAndLint(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "hotsniff_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestHotKeysAnswersTheReport(t *testing.T) {
	for _, c := range []struct {
		path string
		code int
		want string
	}{
		{"/api/v1/hotkeys", 200, `"schema": "hotsniff.report/v1"`},
		{"/api/v1/hotkeys?window=5s&top=1", 200, `"key": "a"`},
		{"/api/v1/hotkeys?port=6379", 200, `"key": "a"`},
		{"/api/v1/hotkeys?port=1", 200, `"keys": []`},
		{"/api/v1/hotkeys?port=x", 400, "port"},
		{"/api/v1/hotkeys?port=65536", 400, "port"},
		{"/api/v1/hotkeys?top=0", 400, "top"},
		{"/api/v1/hotkeys?top=x", 400, "top"},
		{"/api/v1/hotkeys?window=1h", 400, "window"},
		{"/api/v1/hotkeys?top=-1", 400, "top"},
		{"/api/v1/hotkeys?top=99999999999999999999", 400, "top"},
		{"/api/v1/hotkeys?top=1000000000", 200, `"key": "b"`},
		{"/api/v1/hotkeys?port=0", 400, "port"},
		{"/api/v1/hotkeys?port=-1", 400, "port"},
		{"/api/v1/hotkeys?window=60", 400, "window"},
		{"/api/v1/hotkeys?window=%0a", 400, "window"},
		{"/api/v1/hotkeys?top=%zz", 400, "query"},
		{"/api/v1/hotkeys?top=1;port=1", 400, "query"},
		{"/nothing", 404, ""},
	} {
		if code, body := serve(t, snapshot("a", "b"), c.path); code != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s: got %d, %s; want %d, %s", c.path, code, body, c.code, c.want)
		}
	}
	if _, body := serve(t, snapshot("a", "b"), "/api/v1/hotkeys?top=1"); strings.Contains(body, `"key": "b"`) {
		t.Error("top=1 gives two keys")
	}
}

func TestNothingCapturedYetIsNoFailure(t *testing.T) {
	if code, body := serve(t, nil, "/metrics"); code != 200 || strings.Contains(body, "hotsniff_requests_total") {
		t.Errorf("/metrics: got %d", code)
	}
	if code, body := serve(t, nil, "/api/v1/hotkeys"); code != 200 || !strings.Contains(body, `"keys": []`) {
		t.Errorf("/api/v1/hotkeys: got %d, %s", code, body)
	}
}

func TestStateChangingMethodsAreRefused(t *testing.T) {
	w := httptest.NewRecorder()
	NewHandler(options(nil)).ServeHTTP(w, httptest.NewRequest("POST", "/api/v1/hotkeys", nil))
	if w.Code != 405 {
		t.Errorf("POST: got %d; want 405", w.Code)
	}
}
