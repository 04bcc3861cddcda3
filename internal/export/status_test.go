package export

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/topk"
)

// discard is a response that only counts its bytes.
type discard struct {
	n int64
	h http.Header
}

func (d *discard) Header() http.Header {
	if d.h == nil {
		d.h = http.Header{}
	}
	return d.h
}
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(b []byte) (int, error) { d.n += int64(len(b)); return len(b), nil }

func scrapeRequest() *http.Request { return httptest.NewRequest("GET", "/metrics", nil) }

// answer is the status of a GET.
func answer(h http.Handler, path string) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Code
}

// TestHealthFollowsTheCaptureLoop: snapshots that keep coming are health, even
// of an idle interface and when the clock is set; the same one for ten seconds
// is not.
func TestHealthFollowsTheCaptureLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var latest atomic.Pointer[pipeline.Snapshot]
		o := Options{Latest: latest.Load, Top: 20}
		o.Monitor = NewMonitor(o.Latest)
		h := NewHandler(o)
		ctx, cancel := context.WithCancel(context.Background())
		go o.Monitor.Watch(ctx)
		want := func(when string, healthy, ready int) {
			t.Helper()
			synctest.Wait()
			if got := answer(h, "/-/healthy"); got != healthy {
				t.Errorf("%s: healthy is %d; want %d", when, got, healthy)
			}
			if got := answer(h, "/-/ready"); got != ready {
				t.Errorf("%s: ready is %d; want %d", when, got, ready)
			}
		}
		run := func(seconds int, from int64) {
			for i := range seconds {
				latest.Store(&pipeline.Snapshot{Started: 1e9, T: from + int64(i)*1e9})
				time.Sleep(time.Second)
			}
		}
		want("at the start", 200, 503)
		run(3, 1e9)
		want("after 3 s", 200, 503)
		run(30, 4e9)
		want("after 33 s", 200, 200)
		run(5, 10e9) // packet time went backwards
		want("after the clock was set", 200, 200)
		time.Sleep(15 * time.Second)
		want("15 s after the loop hung", 503, 503)
		run(2, 60e9)
		want("after it went on", 200, 200)
		cancel()
	})
}

func TestALoopThatNeverBeginsIsUnhealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler(options(nil))
		time.Sleep(stallAfter + time.Second)
		if got := answer(h, "/-/healthy"); got != 503 {
			t.Errorf("got %d; want 503", got)
		}
	})
}

func TestStatusTellsWhatIsGoingOn(t *testing.T) {
	s := full()
	s.Capture.Interfaces[0].Packets, s.Capture.Interfaces[0].Dropped = 75, 25
	s.Assembler.Opened, s.Decoder.Encrypted = 8, 2
	s.Ports[0].Slow.SampleEvery = 4
	o := options(s)
	o.Config = map[string]string{"port": "6379"}
	w := httptest.NewRecorder()
	NewHandler(o).ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/status", nil))
	var st Status
	if err := json.Unmarshal(w.Body.Bytes(), &st); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	if st.Schema != StatusSchema || st.Node != "n" || st.Version != "1.2.3" || !st.Healthy || st.Configuration["port"] != "6379" {
		t.Errorf("got %+v", st)
	}
	if st.Interfaces[0].DropRatio != .25 || st.Connections.EncryptedRatio != .25 || st.Sampling.KernelEvery != 4 || st.Ports[0].Requests != 1000 {
		t.Errorf("got %+v", st)
	}
	if code, body := serve(t, nil, "/api/v1/status"); code != 200 || !strings.Contains(body, `"snapshot_at": null`) {
		t.Errorf("without a snapshot: got %d, %s", code, body)
	}
}

func TestPprofIsOffUnlessAsked(t *testing.T) {
	o := options(nil)
	if got := answer(NewHandler(o), "/debug/pprof/"); got != 404 {
		t.Errorf("off: got %d", got)
	}
	o.Pprof = true
	if got := answer(NewHandler(o), "/debug/pprof/heap?debug=1"); got != 200 {
		t.Errorf("on: got %d", got)
	}
}

func TestReloadsAndDelaysAreExported(t *testing.T) {
	o := options(nil)
	o.Monitor.Announced(&pipeline.Event{Event: topk.Event{Kind: topk.EventHot, T: time.Now().UnixNano() - 3e8}})
	o.Monitor.Announced(&pipeline.Event{Event: topk.Event{Kind: topk.EventGone, T: 1}})
	o.Monitor.Reloaded(false)
	w := httptest.NewRecorder()
	NewHandler(o).ServeHTTP(w, scrapeRequest())
	for _, want := range []string{"hotsniff_config_last_reload_successful 0\n", "hotsniff_detection_delay_seconds_count 1\n",
		`hotsniff_detection_delay_seconds_bucket{le="0.25"} 0`} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("no %q", want)
		}
	}
}

func TestReloadAnswersWhatCameOfIt(t *testing.T) {
	o := options(nil)
	if got := answer(NewHandler(o), "/-/reload"); got != 404 {
		t.Errorf("without a reload: got %d; want 404", got)
	}
	var err error
	o.Reload = func() (string, error) { return "loaded", err }
	post := func(origin string) (int, string) {
		r := httptest.NewRequest("POST", "/-/reload", nil)
		r.Header.Set("Origin", origin)
		w := httptest.NewRecorder()
		NewHandler(o).ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	if code, body := post(""); code != 200 || body != "loaded\n" {
		t.Errorf("got %d, %q", code, body)
	}
	if code, _ := post("https://elsewhere.example"); code != 403 {
		t.Errorf("from another site's page: got %d; want 403", code)
	}
	if got := answer(NewHandler(o), "/-/reload"); got != 405 {
		t.Errorf("GET: got %d; want 405", got)
	}
	err = errors.New("h.yml:1: threshold: want more")
	if code, body := post(""); code != 500 || body != err.Error()+"\n" {
		t.Errorf("a bad file: got %d, %q", code, body)
	}
}
