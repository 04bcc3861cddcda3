package export

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/internal/pipeline"
)

// collector gives what collect makes to a registry, which checks each series
// against its description.
type collector struct{ o Options }

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range snapshotMetrics() {
		ch <- d.Desc
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	read := expfmt.NewTextParser(model.UTF8Validation)
	for _, d := range snapshotMetrics() {
		for _, f := range collect(c.o.Latest(), c.o.Top) {
			if f.desc != d {
				continue
			}
			parsed, err := read.TextToMetricFamilies(bytes.NewReader(f.append(nil, expfmt.TypeTextPlain)))
			if err != nil {
				ch <- prometheus.NewInvalidMetric(d.Desc, err)
			}
			for _, m := range parsed[d.name].GetMetric() {
				ch <- constant{d, m}
			}
		}
	}
}

// constant is a series that is made already.
type constant struct {
	desc *desc
	m    *dto.Metric
}

// Desc implements prometheus.Metric.
func (c constant) Desc() *prometheus.Desc { return c.desc.Desc }

// Write implements prometheus.Metric.
func (c constant) Write(out *dto.Metric) error {
	out.Label, out.Counter, out.Gauge = c.m.Label, c.m.Counter, c.m.Gauge
	return nil
}

// big is a snapshot with 200 keys on each of 4 ports.
func big() *pipeline.Snapshot {
	var keys []string
	for i := range 200 {
		keys = append(keys, fmt.Sprintf("user:%d:profile", i))
	}
	s := snapshot(keys...)
	for port := uint16(6380); port < 6383; port++ {
		p := s.Ports[0]
		p.Port = port
		s.Ports = append(s.Ports, p)
	}
	return s
}

// TestTextIsWhatARegistryGives: to the byte, in both formats, and the registry
// finds no fault.
func TestTextIsWhatARegistryGives(t *testing.T) {
	hostile := snapshot("z", "a", "a\xff", `a\xff`, "\n", "", `q"\`, "😀", strings.Repeat("x", 1000))
	for i, v := range []float64{0, 1, -1, 1e21, 1e-9, 123456789, math.Inf(1)} {
		hostile.Ports[0].Slow.Keys[i].Rate = v
	}
	for name, s := range map[string]*pipeline.Snapshot{"full": full(), "big": big(), "hostile": hostile, "none": nil} {
		o := options(s)
		o.Top = 200
		reg := prometheus.NewPedanticRegistry()
		reg.MustRegister(collector{o})
		want, err := reg.Gather()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, format := range formats {
			var b bytes.Buffer
			enc := expfmt.NewEncoder(&b, format)
			for _, f := range want {
				if err := enc.Encode(f); err != nil {
					t.Fatal(err)
				}
			}
			var got []byte
			for _, p := range encodeText(collect(s, o.Top), format.FormatType()) {
				got = append(got, p.text...)
			}
			if d := cmp.Diff(string(got), b.String()); d != "" {
				t.Errorf("%s as %s: %s", name, format, d)
			}
		}
	}
}

// TestSeriesThatFallTogetherAreOne: two devices whose names are the same once
// they are valid UTF-8.
func TestSeriesThatFallTogetherAreOne(t *testing.T) {
	s := full()
	s.Capture.Interfaces = []capture.InterfaceStats{{Name: "e\xff", Packets: 1}, {Name: "d", Packets: 5}, {Name: "e\xfe", Packets: 2}}
	_, body := serve(t, s, "/metrics")
	want := "hotsniff_capture_packets_total{interface=\"d\"} 5\nhotsniff_capture_packets_total{interface=\"e\uFFFD\"} 3\n"
	if !strings.Contains(body, want) {
		t.Errorf("no %q", want)
	}
}

func scrape(t *testing.T, h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

var typeLine = regexp.MustCompile(`(?m)^# TYPE \S+`)

// TestScrapeSpeaksEveryFormat: each format can be read back, is ordered by
// name, and holds what comes from the snapshot and what does not.
func TestScrapeSpeaksEveryFormat(t *testing.T) {
	h := NewHandler(options(full()))
	for _, accept := range []string{
		"", "text/plain;version=0.0.4", "application/openmetrics-text;version=1.0.0",
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,text/plain;q=0.1",
		// Prometheus 2 and 3
		"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
	} {
		w := scrape(t, h, "/metrics", "Accept", accept)
		if w.Code != 200 || w.Header().Get("Content-Length") != fmt.Sprint(w.Body.Len()) {
			t.Errorf("%q: got %d, %v", accept, w.Code, w.Header())
		}
		if strings.Contains(accept, "openmetrics") {
			if body := w.Body.String(); !strings.HasPrefix(w.Header().Get("Content-Type"), "application/openmetrics-text; version=1.0.0") || strings.Count(body, "# EOF\n") != 1 ||
				!strings.HasSuffix(body, "# EOF\n") || !strings.Contains(body, "# TYPE hotsniff_requests counter\nhotsniff_requests_total{") {
				t.Errorf("got %s: %s", w.Header().Get("Content-Type"), body)
			}
			continue // the library reads none of it
		}
		if !slices.IsSorted(typeLine.FindAllString(w.Body.String(), -1)) {
			t.Errorf("%q: not sorted", accept)
		}
		var names []string
		dec := expfmt.NewDecoder(w.Body, expfmt.ResponseFormat(w.Header()))
		for {
			var f dto.MetricFamily
			if err := dec.Decode(&f); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%q: %v", accept, err)
			}
			names = append(names, f.GetName())
		}
		for _, want := range []string{"hotsniff_key_share_ratio", "hotsniff_build_info", "go_goroutines", "process_resident_memory_bytes"} {
			if !slices.Contains(names, want) {
				t.Errorf("%q: no %s", accept, want)
			}
		}
	}
}

// broken is a collector that fails.
type broken struct{ *prometheus.Desc }

func (b broken) Describe(ch chan<- *prometheus.Desc) { ch <- b.Desc }
func (b broken) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewInvalidMetric(b.Desc, errors.New("out of order"))
}

// TestWhatCannotBeGatheredDoesNotTakeTheRestAlong, and is told in the log.
func TestWhatCannotBeGatheredDoesNotTakeTheRestAlong(t *testing.T) {
	var log bytes.Buffer
	o := options(full())
	o.Extra = []prometheus.Collector{broken{prometheus.NewDesc("broken", "", nil, nil)}}
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	w := scrape(t, NewHandler(o), "/metrics")
	for _, want := range []string{`hotsniff_requests_total{port="6379"} 1000`, "hotsniff_build_info{", "\nhotsniff_config_last_reload_successful 1\n", "\ngo_goroutines "} {
		if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("got %d without %q", w.Code, want)
		}
	}
	if !strings.Contains(log.String(), "out of order") {
		t.Errorf("the log says nothing of it: %s", log.String())
	}
}

func TestScrapeIsCompressedForThoseWhoAsk(t *testing.T) {
	h := NewHandler(options(full()))
	for header, want := range map[string]bool{"gzip": true, "deflate, GZIP;q=0.5": true, "": false, "gzip;q=0": false, "br": false, "gzip;q=x": false} {
		w := scrape(t, h, "/metrics", "Accept-Encoding", header)
		var body io.Reader = w.Body
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != want {
			t.Errorf("%q: got gzip %v; want %v", header, got, want)
			continue
		}
		if want {
			var err error
			if body, err = gzip.NewReader(w.Body); err != nil {
				t.Fatal(err)
			}
		}
		text, err := io.ReadAll(body)
		if err != nil || !strings.Contains(string(text), `hotsniff_requests_total{port="6379"} 1000`) {
			t.Errorf("%q: got %v in %s", header, err, text)
		}
	}
}

func TestNamesInTheQueryChooseMetrics(t *testing.T) {
	body := scrape(t, NewHandler(options(full())), "/metrics?name[]=hotsniff_hot_keys&name[]=go_goroutines").Body.String()
	if n := strings.Count(body, "# TYPE "); n != 2 || !strings.Contains(body, "hotsniff_hot_keys{") || !strings.Contains(body, "\ngo_goroutines ") {
		t.Errorf("got %s", body)
	}
}

// TestScrapesOfOneTickShareTheirMetrics and see the next tick at once, whatever
// their format.
func TestScrapesOfOneTickShareTheirMetrics(t *testing.T) {
	s := full()
	o := options(nil)
	o.Latest = func() *pipeline.Snapshot { return s }
	h := newScrapes(o)
	const text, open = expfmt.FmtText, expfmt.FmtOpenMetrics_1_0_0
	first := &h.encoded(text)[0].text[0]
	if again := &h.encoded(text)[0].text[0]; again != first {
		t.Error("the same tick was encoded twice")
	}
	if other := &h.encoded(open)[0].text[0]; other == first {
		t.Error("another format got the same bytes")
	}
	s = snapshot("next")
	if body := scrape(t, h, "/metrics").Body.String(); !strings.Contains(body, `key="next"`) {
		t.Error("the next tick is not seen")
	}
}

func TestScrapesAtOnceAgreeAndAreBounded(t *testing.T) {
	h := newScrapes(options(big()))
	want := scrape(t, h, "/metrics?name[]=hotsniff_key_share_ratio").Body.String()
	var wg sync.WaitGroup
	for range maxScrapes {
		wg.Go(func() {
			if got := scrape(t, h, "/metrics?name[]=hotsniff_key_share_ratio", "Accept-Encoding", ""); got.Code == 200 && got.Body.String() != want {
				t.Error("got another answer")
			}
		})
	}
	wg.Wait()
	for range maxScrapes {
		h.slots <- struct{}{}
	}
	if w := scrape(t, h, "/metrics"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("beyond the limit: got %d; want 503", w.Code)
	}
}

// BenchmarkScrape is a scrape with 200 keys on each of 4 ports, of a snapshot
// that no scrape has seen yet.
func BenchmarkScrape(b *testing.B) {
	for _, c := range []struct{ name, accept, encoding string }{
		{"text", "", ""}, {"text-gzip", "", "gzip"},
		{"openmetrics", "application/openmetrics-text;version=1.0.0", ""},
		{"openmetrics-gzip", "application/openmetrics-text;version=1.0.0", "gzip"},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := big()
			o := options(nil)
			o.Latest, o.Top = func() *pipeline.Snapshot { return s }, 200
			h := NewHandler(o)
			w, r := &discard{}, scrapeRequest()
			r.Header.Set("Accept", c.accept)
			r.Header.Set("Accept-Encoding", c.encoding)
			h.ServeHTTP(w, r)
			b.SetBytes(w.n)
			b.ReportAllocs()
			begin := cpuTime()
			for b.Loop() {
				next := *s
				s = &next
				h.ServeHTTP(w, r)
			}
			// What counts beside a Redis that keeps the machine busy.
			b.ReportMetric(float64(cpuTime()-begin)/float64(b.N)/1e6, "cpu-ms/op")
		})
	}
}
