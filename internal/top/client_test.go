package top

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/hotsniff/hotsniff/internal/export"
	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/internal/report"
)

// answers is a daemon that answers what a test wants.
func answers(t *testing.T, hotkeys, status string) *Client {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/sub/api/v1/hotkeys", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, hotkeys) })
	mux.HandleFunc("/sub/api/v1/status", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, status) })
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	c, err := NewClient(srv.URL+"/sub/", nil) // behind a proxy that adds a path
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const okReport = `{"schema":"hotsniff.report/v1","keys":[{"key":"k","share":0.5}]}`
const okStatus = `{"schema":"hotsniff.status/v1","healthy":true,"cpu_ratio":0.02,"ports":[{"port":1,"requests":3},{"port":2,"requests":4}]}`

func TestClientTakesReportAndStatus(t *testing.T) {
	s, err := answers(t, okReport, okStatus).Sample(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if s.Requests != 7 || s.CPURatio != 0.02 || s.Warning != "" || len(s.Slow.Keys) != 1 || s.Fast.Keys[0].Share != 0.5 {
		t.Errorf("got %+v", s)
	}
	s, err = answers(t, okReport, strings.Replace(okStatus, "true", "false", 1)).Sample(context.Background())
	if err != nil || !strings.Contains(s.Warning, "no progress") {
		t.Errorf("got %+v, %v; want that the capture hangs", s, err)
	}
}

func TestClientRefusesWhatIsNoDaemon(t *testing.T) {
	for name, c := range map[string]*Client{
		"a web page":     answers(t, "<html>", okStatus),
		"another schema": answers(t, strings.Replace(okReport, "report/v1", "report/v9", 1), okStatus),
		"a bad status":   answers(t, okReport, "{}"),
		"a wrong type":   answers(t, strings.Replace(okReport, "0.5", `"x"`, 1), okStatus),
	} {
		if s, err := c.Sample(context.Background()); err == nil {
			t.Errorf("%s: got %+v; want an error", name, s)
		}
	}
	c := answers(t, okReport+strings.Repeat(" ", 2000), okStatus)
	c.maxBytes = 1000
	if _, err := c.Sample(context.Background()); err == nil {
		t.Error("an answer beyond the limit is taken")
	}
}

// fakeSampler gives what a test wants.
type fakeSampler func() (*Sample, error)

func (f fakeSampler) Sample(context.Context) (*Sample, error) { return f() }

func TestFeedSendsSamplesAndTrouble(t *testing.T) {
	n := 0
	results := []error{ErrNothing, nil, errors.New("gone"), nil}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := fakeSampler(func() (*Sample, error) {
		if n == len(results) {
			cancel()
			return nil, ctx.Err()
		}
		n++
		return &Sample{Slow: &report.Report{}, Fast: &report.Report{}}, results[n-1]
	})
	var got []string
	Feed(ctx, s, time.Millisecond, func(m tea.Msg) { got = append(got, fmt.Sprintf("%T", m)) })
	if want := "top.SampleMsg top.TroubleMsg top.SampleMsg"; strings.Join(got, " ") != want {
		t.Errorf("got %v; want %s", got, want)
	}
}

func TestEngineSampleHasBothWindows(t *testing.T) {
	var latest *pipeline.Snapshot
	e := &Engine{Latest: func() *pipeline.Snapshot { return latest }, Node: "n", Top: 5}
	if _, err := e.Sample(context.Background()); !errors.Is(err, ErrNothing) {
		t.Errorf("got %v; want ErrNothing", err)
	}
	latest = &pipeline.Snapshot{T: testStart.UnixNano(), Panics: 1}
	s, err := e.Sample(context.Background())
	if err != nil || s.Slow.Node != "n" || s.Fast.Node != "n" || !strings.Contains(s.Warning, "bug") {
		t.Errorf("got %+v, %v", s, err)
	}
	if m := New(Options{Plain: true}); true {
		m.Update(SampleMsg{s})
		checkFrame(t, frame(m, 80, 24), 80, 24, Options{Plain: true})
	}
}

// TestSchemasAreThoseOfTheDaemon keeps the two ends together.
func TestSchemasAreThoseOfTheDaemon(t *testing.T) {
	if report.Schema != "hotsniff.report/v1" || export.StatusSchema != "hotsniff.status/v1" {
		t.Error("a schema changed: look whether Client understands the new one")
	}
}
