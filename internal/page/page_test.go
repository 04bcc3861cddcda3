package page

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/internal/report"
	"github.com/hotsniff/hotsniff/topk"
)

// hostile are keys that someone wrote who wants to be seen elsewhere.
var hostile = []string{
	`<img src=x onerror=alert(1)>`, `</script><script>alert(1)</script>`, `</style><svg onload=alert(1)>`, `"><b>`, `<!--<script>`,
	"rtl\u202egnp.exe", "iso\u2066late", "zero\u200bwidth", "new\nline", "esc\x1b[31mred", "nul\x00", "\u2028line", "שלום:עולם",
	"combining\u0301\u0302", "{{.Node}}", "${alert(1)}", "javascript:alert(1)", "", " ", strings.Repeat("long", 256), "bin\xff\xfe",
}

// snapshot has the keys with a falling share; those listed are hot.
func snapshot(listed int, keys ...string) *pipeline.Snapshot {
	slow := &topk.Snapshot{T: 100e9, From: 40e9, WindowSeconds: 60, SampleEvery: 1, EventEvery: 1, Accesses: 6000, SampledAccesses: 6000, Distinct: 812}
	for i, k := range keys {
		s := topk.KeyStat{Key: []byte(k), KeyLen: int64(len(k)), Share: .2 / float64(i+1), ShareLow: .19 / float64(i+1), ShareHigh: .21 / float64(i+1),
			Accesses: uint64(1200 / (i + 1)), Rate: 20 / float64(i+1), Reads: 8, Writes: 2, RequestBytes: 6e5, ReplyBytes: 6e6, Clients: 3,
			TopClient: [16]byte{10: 0xff, 11: 0xff, 12: 10, 15: 7}, TopClientShare: .4, History: []uint32{1, 5, 3, 9, 0}}
		if i < listed {
			s.State, s.Since = topk.StateHot, 95e9
		}
		slow.Keys = append(slow.Keys, s)
	}
	return &pipeline.Snapshot{T: 100e9, Started: 1, Ports: []pipeline.PortSnapshot{{Port: 6379, Slow: slow, Fast: slow}}}
}

// handler serves the page of a snapshot.
func handler(s *pipeline.Snapshot) (http.Handler, *Page) {
	p := New(Options{Latest: func() *pipeline.Snapshot { return s }, Node: "redis-1", Top: 200,
		Status: func() Status {
			return Status{Version: "1.2.3", Healthy: true, CPURatio: .031, Publish: &Publish{Result: "ok", Receivers: 3}}
		}})
	mux := http.NewServeMux()
	p.Register(mux)
	return mux, p
}

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

func TestThePageIsReadableWithoutJavaScript(t *testing.T) {
	h, _ := handler(snapshot(1, "product:1", "user:2"))
	w := get(h, "/")
	body := w.Body.String()
	for _, want := range []string{
		`<bdi>product:1</bdi>`, "20.00%", "19.00–21.00%", "80/20", "107.4 KiB/s", "10.0.0.7 40%", "1 hot key takes 20% of all accesses",
		`<span class="chip">hot</span>`, "5 s</time>", "redis-1", "3% of a core", "to 3 subscribers", `http-equiv="refresh"`, "<polyline points=\"0,", "812",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	if w.Code != 200 || w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("got %d, %v", w.Code, w.Header())
	}
	if get(h, "/?window=5s").Code != 200 || get(h, "/?window=1h").Code != 400 || get(h, "/api/v1/events?window=1h").Code != 400 {
		t.Error("window: want 5s served and 1h refused")
	}
}

func TestThePageOfNothingSaysSo(t *testing.T) {
	h, _ := handler(nil)
	if body := get(h, "/").Body.String(); !strings.Contains(body, "No traffic has been seen") || !strings.Contains(body, "No key has been seen.") {
		t.Error(body)
	}
}

func TestThePolicyIsStrict(t *testing.T) {
	h, _ := handler(snapshot(1, "a"))
	policy := get(h, "/").Header().Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'",
		"form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("no %s in %s", want, policy)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
		t.Error(policy)
	}
	// What the policy would block is not there.
	inline := regexp.MustCompile(`(?i)<style|<script[^>]*>[^<]|\son[a-z]+=|\sstyle=|https?://`)
	body := strings.ReplaceAll(get(h, "/").Body.String(), "http://www.w3.org/2000/svg", "") // in the icon
	if found := inline.FindString(strings.ReplaceAll(body, "xmlns='http", "")); found != "" {
		t.Errorf("the page has %q", found)
	}
}

// unsafe finds markup of a key that was not escaped.
var unsafe = regexp.MustCompile(`<img|<b>|<svg onload|alert\(1\)</script|[\x00-\x08\x0b-\x1f\x{202a}-\x{202e}\x{2066}-\x{2069}\x{200b}]`)

func TestHostileKeysAreTextInThePage(t *testing.T) {
	h, _ := handler(snapshot(len(hostile), hostile...))
	body := get(h, "/").Body.String()
	if found := unsafe.FindString(body); found != "" {
		t.Errorf("the page has %q", found)
	}
	for _, want := range []string{`&lt;img src=x onerror=alert(1)&gt;`, `rtl\u{202e}gnp.exe`, `esc\x1b[31mred`, `<bdi>שלום:עולם</bdi>`, `<bdi>&#34;&#34;</bdi>`, `bin\xff\xfe`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	if strings.Contains(body, strings.Repeat("long", 17)) {
		t.Error("a long key is not cut")
	}
}

// file writes a report and takes it apart.
func file(t *testing.T, r *report.Report) (all, script, style, data string) {
	t.Helper()
	var b strings.Builder
	if err := WriteFile(&b, r, "1.2.3"); err != nil {
		t.Fatal(err)
	}
	all = b.String()
	between := func(from, to string) string {
		_, rest, ok := strings.Cut(all, from)
		text, _, ok2 := strings.Cut(rest, to)
		if !ok || !ok2 {
			t.Fatalf("nothing between %s and %s", from, to)
		}
		return text
	}
	return all, between("<script>", "</script>"), between("<style>", "</style>"), between(`id="data">`, "</script>")
}

func TestAFileHasEverythingInside(t *testing.T) {
	r := snapshot(len(hostile), hostile...).Report("redis-1", 0)
	all, script, style, text := file(t, r)
	for name, part := range map[string]string{"script-src": script, "style-src": style} {
		sum := sha256.Sum256([]byte(part))
		want := name + " &#39;sha256-" + strings.ReplaceAll(base64.StdEncoding.EncodeToString(sum[:]), "+", "&#43;") + "&#39;;"
		if !strings.Contains(all, want) {
			t.Errorf("the policy does not allow the %s: no %s", name, want)
		}
	}
	var d data
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	if d.Schema != Schema || d.Status != nil || len(d.Report.Keys) != len(hostile) || len(d.Details) != len(hostile) || len(d.Details[0].History) != 5 {
		t.Errorf("got %s", text)
	}
	for i, k := range d.Report.Keys {
		if string(k.Raw()) != string(r.Keys[i].Raw()) {
			t.Errorf("key %d: got %q; want %q", i, k.Raw(), r.Keys[i].Raw())
		}
	}
	// JSON may hold any character but what ends the element; the table may not.
	table := strings.Replace(all, text, "", 1)
	if found := unsafe.FindString(table); found != "" || strings.ContainsAny(text, "<>&") {
		t.Errorf("the file has %q", found)
	}
	if found := regexp.MustCompile(`(src|href)="[^d#]`).FindString(all); found != "" {
		t.Errorf("the file refers to something outside: %q", found)
	}
	if strings.Contains(all, "refresh") || strings.Contains(all, "Pause") {
		t.Error("a file looks live")
	}
}

func TestAFileIsBounded(t *testing.T) {
	r := &report.Report{Keys: make([]report.Key, 5*maxFileKeys)}
	for i := range r.Keys {
		r.Keys[i].Key = fmt.Sprint("key:", i)
	}
	all, _, _, _ := file(t, r)
	if n := strings.Count(all, "<bdi>key:"); n != maxFileKeys || len(r.Keys) != 5*maxFileKeys || !strings.Contains(all, "4000 more are not in this file") {
		t.Errorf("got %d rows", n)
	}
}

// TestTheScriptStandsInsideAnElement: nothing in the script or the style sheet
// ends the element that holds it in a file.
func TestTheScriptStandsInsideAnElement(t *testing.T) {
	for name, text := range map[string]string{"script": script, "styles": styles} {
		if strings.Contains(text, "</") || strings.Contains(text, "<!--") {
			t.Errorf("%s: has </ or <!--", name)
		}
	}
	for _, sink := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "DOMParser", "createContextualFragment"} {
		if strings.Contains(script, sink) {
			t.Errorf("the script uses %s", sink)
		}
	}
}

func TestTextForPeople(t *testing.T) {
	f := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	}
	f(number(0), "0")
	f(number(999), "999")
	f(number(1234567), "1,234,567")
	f(percent0(0.004), "<1%")
	f(percent0(0), "0%")
	f(age(-time.Second), "0 s")
	f(age(133*time.Second), "2 min 13 s")
	f(age(2*time.Hour+14*time.Minute), "2 h 14 min")
	f(age(76*time.Hour), "3 d 4 h")
	f(topCommand(&report.Key{Commands: map[string]uint64{"SET": 1, "GET": 1}}), "GET 50%")
	f(lost("", 5, 0).Value, "5 (100%)")
	f(lost("", 1, 1e6).Level, okLevel)
	f(lost("", 1e4, 1e6).Level, warnLevel)
	f(publishing(&Publish{Result: "timeout", Failing: 4}).Value, "timeout, 4 in a row")
}

func TestTheHeadNamesTheWholeWindow(t *testing.T) {
	for _, x := range []struct {
		from int64
		want string
	}{{40e9, "last 60 s"}, {409e8, "last 60 s"}, {935e8, "last 7 s"}} {
		s := snapshot(0, "a")
		s.Ports[0].Slow.From = x.from
		h, _ := handler(s)
		if body := get(h, "/").Body.String(); !strings.Contains(body, ">"+x.want+"<") {
			t.Errorf("from %d: no %q in %s", x.from, x.want, body[:min(len(body), 3000)])
		}
	}
}

func TestWhatIsNotWatchedIsNotZero(t *testing.T) {
	s := snapshot(0, "a")
	k := &s.Ports[0].Slow.Keys[0]
	k.RequestBytes, k.ReplyBytes, k.Clients, k.TopClientShare = 0, 0, 0, 0
	h, _ := handler(s)
	if body := get(h, "/").Body.String(); strings.Contains(body, "0 B/s") || strings.Contains(body, `data-label="Clients">0<`) || !strings.Contains(body, `data-label="Clients">-<`) || strings.Contains(body, "80/20") {
		t.Error(body)
	}
}
