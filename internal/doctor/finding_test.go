package doctor

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestReportIsALineACheck(t *testing.T) {
	var r Report
	r.Add(ok("kernel", "Linux %d", 6))
	if r.Err() != nil {
		t.Error(r.Err())
	}
	r.Add(warn("server", "do this", "two\nlines \x1b[31m"), fail("publish", "do that", "no"))
	var text, js bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	if len(lines) != 3 || lines[0] != "ok    kernel          Linux 6" || !strings.HasSuffix(lines[2], "no; fix: do that") || strings.Contains(text.String(), "\x1b") {
		t.Errorf("got %q", lines)
	}
	if err := r.Err(); err == nil || err.Error() != "doctor: 1 of 3 checks failed" {
		t.Errorf("got %v", err)
	}
	if err := r.WriteJSON(&js); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Schema string
		Failed bool
		Checks []struct{ Status, Name, Found, Fix string }
	}
	if err := json.Unmarshal(js.Bytes(), &back); err != nil || back.Schema != Schema || !back.Failed || len(back.Checks) != 3 ||
		back.Checks[0].Status != "ok" || back.Checks[1].Status != "warn" || back.Checks[2].Status != "fail" || back.Checks[2].Fix != "do that" {
		t.Errorf("got %+v, %v", back, err)
	}
	if Status(9).String() != "invalid" {
		t.Error("an unknown state has a name")
	}
}
