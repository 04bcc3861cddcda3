package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBadConfigurationsAreRefusedWithTheirLine: every file of testdata/config,
// with the message that messages.txt has for it.
func TestBadConfigurationsAreRefusedWithTheirLine(t *testing.T) {
	dir, err := filepath.Abs("testdata/config")
	if err != nil {
		t.Fatal(err)
	}
	messages, err := os.ReadFile(filepath.Join(dir, "messages.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(messages)) {
		file, _, _ := strings.Cut(line, ":")
		want[file] += line
	}
	files, err := filepath.Glob(filepath.Join(dir, "bad-*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		name := filepath.Base(path)
		code, out, errOut := hotsniff(t, "", "check-config", path)
		got := strings.ReplaceAll(strings.TrimPrefix(errOut, "hotsniff: "), dir+string(filepath.Separator), "")
		if code != 1 || out != "" || !strings.HasPrefix(errOut, "hotsniff: ") {
			t.Errorf("%s: got code %d, %q, %q; want code 1 and the mistake on stderr", name, code, out, errOut)
		}
		if d := cmp.Diff(got, want[name]); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if strings.Contains(errOut, "S3cret") {
			t.Errorf("%s: %q shows a password", name, errOut)
		}
		// A start says the same.
		if code, _, atStart := hotsniff(t, "", "run", "--config.file", path); code != 1 || atStart != errOut {
			t.Errorf("%s: run: got code %d, %q; want code 1, %q", name, code, atStart, errOut)
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("messages.txt has a message for %s, which is not there", name)
	}
}

func TestCheckConfigExitCodes(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		out  string
	}{
		{[]string{"testdata/config/good.yml"}, 0, "good.yml: ok\n"},
		{[]string{"testdata/config/good-empty.yml"}, 0, "good-empty.yml: ok\n"},
		{[]string{"testdata/config/bad-number.yml"}, 1, ""},
		{[]string{"/nonexistent.yml"}, 1, ""},
		{[]string{"testdata/config"}, 1, ""},
		{nil, 2, ""},
		{[]string{"testdata/config/good.yml", "--frobnicate"}, 2, ""},
	} {
		code, out, errOut := hotsniff(t, "", append([]string{"check-config"}, c.args...)...)
		if code != c.code || !strings.HasSuffix(out, c.out) || (code == 0) != (errOut == "") {
			t.Errorf("%v: got code %d, %q, %q; want code %d, %q", c.args, code, out, errOut, c.code, c.out)
		}
	}
}

// TestCheckConfigLooksAtTheFileAlone: what the caller's environment says would
// hide a mistake.
func TestCheckConfigLooksAtTheFileAlone(t *testing.T) {
	t.Setenv("HOTSNIFF_THRESHOLD", "0.5")
	if code, _, errOut := hotsniff(t, "", "check-config", "testdata/config/bad-too-small.yml"); code != 1 {
		t.Errorf("got %d, %q; want 1", code, errOut)
	}
}

func TestConfigurationDocsAreUpToDate(t *testing.T) {
	have, err := os.ReadFile("../../CONFIGURATION.md")
	if err != nil {
		t.Fatal(err)
	}
	code, want, errOut := hotsniff(t, "", "config-docs")
	if code != 0 {
		t.Fatal(errOut)
	}
	if !bytes.Equal(have, []byte(want)) {
		t.Error("CONFIGURATION.md is not what the flags say: run make generate\n" + cmp.Diff(string(have), want))
	}
}

// TestEverySettingIsDocumentedCompletely: a variable, a default or a
// placeholder that tells there is none, and a sentence.
func TestEverySettingIsDocumentedCompletely(t *testing.T) {
	_, docs, _ := hotsniff(t, "", "config-docs")
	rows := 0
	for line := range strings.Lines(docs) {
		cells := strings.Split(line, " | ")
		if len(cells) != 6 || !strings.HasPrefix(line, "| `") {
			continue
		}
		rows++
		key := strings.Trim(cells[0], "| `")
		if want := "`HOTSNIFF_" + strings.NewReplacer(".", "_", "-", "_").Replace(strings.ToUpper(key)) + "`"; cells[1] != want {
			t.Errorf("%s: got the variable %s; want %s", key, cells[1], want)
		}
		if help := strings.TrimSuffix(cells[5], " |\n"); !strings.HasSuffix(help, ".") && !strings.HasSuffix(help, ").") {
			t.Errorf("%s: its meaning is no sentence: %q", key, help)
		}
	}
	if rows < 25 {
		t.Errorf("only %d settings are documented", rows)
	}
}

// TestEverySettingIsKeyVariableAndFlag gives each documented setting that does
// not take any text a wrong value, by each way: what is not read complains of
// nothing.
func TestEverySettingIsKeyVariableAndFlag(t *testing.T) {
	_, docs, _ := hotsniff(t, "", "config-docs")
	ended, cancel := context.WithCancel(t.Context())
	cancel() // a start that is not refused ends at once
	start := func(args ...string) (int, string) {
		var errOut bytes.Buffer
		code := run(ended, append([]string{"run"}, args...), stdio{strings.NewReader(""), &bytes.Buffer{}, &errOut})
		return code, errOut.String()
	}
	tried := 0
	for line := range strings.Lines(docs) {
		cells := strings.Split(line, " | ")
		if len(cells) != 6 || !strings.HasPrefix(line, "| `") || strings.TrimSpace(cells[3]) == "" {
			continue
		}
		tried++
		key, variable := strings.Trim(cells[0], "| `"), strings.Trim(cells[1], "`")
		if code, text := start("--" + key + "=@"); code != exitUsage || !strings.Contains(text, key) {
			t.Errorf("--%s=@: got %d, %q", key, code, text)
		}
		file := write(t, "h.yml", key+": \"@\"\n")
		if code, text := start("--config.file", file); code != exitFailure || !strings.Contains(text, "h.yml:1: "+key) {
			t.Errorf("%s: \"@\" in the file: got %d, %q", key, code, text)
		}
		os.Setenv(variable, "@")
		code, text := start()
		os.Unsetenv(variable)
		if code == 0 || !strings.Contains(text, key) && !strings.Contains(text, variable) {
			t.Errorf("%s=@: got %d, %q", variable, code, text)
		}
	}
	if tried < 20 {
		t.Errorf("only %d settings were tried", tried)
	}
}
