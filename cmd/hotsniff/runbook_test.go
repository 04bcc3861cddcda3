package main

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hotsniff/hotsniff/actions"
	"github.com/hotsniff/hotsniff/internal/export"
	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/topk"
)

var (
	codeSpan    = regexp.MustCompile("`([^`]+)`")
	curlCommand = regexp.MustCompile(`^curl -sf? '?localhost:9379(/[^' ]*)'?(?: \| jq '([^']*)')?$`)
	flagWord    = regexp.MustCompile(`^--[a-z]`)
	metricWord  = regexp.MustCompile(`\bhotsniff_[a-z_]+`)
	quotedWord  = regexp.MustCompile(`"[^"]*"`)
	fieldWord   = regexp.MustCompile(`[a-z][a-z_]*`)
)

// runbookSections are the parts of the runbook that are about one alert each.
func runbookSections(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("../../docs/RUNBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, part := range strings.Split(string(data), "\n## ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		out[name] = text
	}
	return out
}

// answers is what the daemon serves, with one key.
func answers() export.Options {
	window := &topk.Snapshot{T: 60e9, WindowSeconds: 60, SampleEvery: 1, EventEvery: 1, Accesses: 1,
		Keys: []topk.KeyStat{{Key: []byte("a"), Share: 1, Accesses: 1, Reads: 1, Clients: 1, TopClientShare: 1}}}
	s := &pipeline.Snapshot{T: 60e9, Started: 1, Ports: []pipeline.PortSnapshot{{Port: 6379, Slow: window, Fast: window}}}
	latest := func() *pipeline.Snapshot { return s }
	return export.Options{Latest: latest, Monitor: export.NewMonitor(latest), Top: 20, Config: map[string]string{"port": "6379"},
		Publish: func() actions.Stats { return actions.Stats{} }}
}

// TestRunbookSaysForEachAlertWhatToDo: the four questions of each, and one
// command to begin with.
func TestRunbookSaysForEachAlertWhatToDo(t *testing.T) {
	sections := runbookSections(t)
	if len(sections) < 12 {
		t.Errorf("got %d sections; want 12 or more", len(sections))
	}
	for name, text := range sections {
		rest := text
		for _, part := range []string{"**Means** ", "\n**Confirm** ", "\n**Do** ", "\n**Worked** "} {
			_, after, ok := strings.Cut(rest, part)
			if !ok {
				t.Errorf("%s: no %q, or not in its place", name, strings.TrimSpace(part))
			}
			rest = after
		}
		if _, confirm, _ := strings.Cut(text, "**Confirm** "); !strings.HasPrefix(confirm, "`") {
			t.Errorf("%s: is confirmed by no command", name)
		}
	}
}

// TestRunbookCommandsAreRight: what is called hotsniff is a command line of it,
// what asks the daemon gets an answer with the fields that are taken from it,
// and flags and metrics exist.
func TestRunbookCommandsAreRight(t *testing.T) {
	a := &app{args: []string{"run"}, ctx: context.Background()}
	if _, err := a.parse(new(cli)); err != nil {
		t.Fatal(err)
	}
	metrics := map[string]bool{}
	for _, d := range export.Docs() {
		metrics[d.Name] = true
	}
	n := 0
	for name, text := range runbookSections(t) {
		for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
			code := m[1]
			switch {
			case strings.HasPrefix(code, "hotsniff "):
				n++
				if _, err := (&app{args: strings.Fields(code)[1:], ctx: context.Background()}).parse(new(cli)); err != nil {
					t.Errorf("%s: %s: %v", name, code, err)
				}
			case strings.HasPrefix(code, "curl "):
				n++
				checkCurl(t, name, code)
			case flagWord.MatchString(code):
				if flag := strings.Fields(code)[0][2:]; a.flags[flag] == nil {
					t.Errorf("%s: there is no flag --%s", name, flag)
				}
			case !strings.Contains(code, ":hotsniff_"): // records are of rules.yml
				for _, metric := range metricWord.FindAllString(code, -1) {
					if !metrics[metric] {
						t.Errorf("%s: there is no metric %s", name, metric)
					}
				}
			}
		}
	}
	if n < 12 {
		t.Errorf("got %d commands; want one for each alert", n)
	}
}

// checkCurl asks a handler what the command asks the daemon.
func checkCurl(t *testing.T, section, code string) {
	t.Helper()
	m := curlCommand.FindStringSubmatch(code)
	if m == nil {
		t.Errorf("%s: what does %s?", section, code)
		return
	}
	o := answers()
	w := httptest.NewRecorder()
	export.NewHandler(o).ServeHTTP(w, httptest.NewRequest("GET", m[1], nil))
	if w.Code != 200 {
		t.Errorf("%s: %s: got %d, %s", section, m[1], w.Code, w.Body)
		return
	}
	if m[2] == "" {
		return
	}
	known := map[string]bool{"select": true}
	var body any
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Errorf("%s: %s: %v", section, m[1], err)
	}
	addFields(known, body)
	for _, field := range fieldWord.FindAllString(quotedWord.ReplaceAllString(m[2], ""), -1) {
		if !known[field] {
			t.Errorf("%s: %s has no field %s", section, m[1], field)
		}
	}
}

// addFields adds the names of all fields in a JSON value.
func addFields(known map[string]bool, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			known[name] = true
			addFields(known, field)
		}
	case []any:
		for _, e := range v {
			addFields(known, e)
		}
	}
}
