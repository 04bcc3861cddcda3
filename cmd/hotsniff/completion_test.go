package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hotsniff/hotsniff/internal/testkit"
)

// printed is what a command writes to standard output.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs strings.Builder
	if code := run(context.Background(), args, stdio{strings.NewReader(""), &out, &errs}); code != 0 {
		t.Fatalf("hotsniff %s: exit code %d\n%s", strings.Join(args, " "), code, errs.String())
	}
	return out.String()
}

// script writes a completion script into a file.
func script(t *testing.T, shell, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(printed(t, "completion", shell)), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// shellOutput runs a program of a shell, or skips without that shell.
func shellOutput(t *testing.T, shell string, args ...string) []string {
	t.Helper()
	out, err := exec.Command(testkit.Program(t, shell), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", shell, err, out)
	}
	return strings.Fields(string(out))
}

func TestBashCompletes(t *testing.T) {
	path := script(t, "bash", "hotsniff.bash")
	complete := func(words ...string) []string {
		line := "source " + path + "; COMP_WORDS=(" + strings.Join(words, " ") + "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _hotsniff; echo \"${COMPREPLY[@]}\""
		return shellOutput(t, "bash", "--norc", "-c", line)
	}
	for _, c := range []struct {
		line string
		want string
	}{
		{"hotsniff ver", "version"},
		{"hotsniff run --web.listen", "--web.listen-address"},
		{"hotsniff run --capture.direction ''", "in out both"},
		{"hotsniff run --capture.direction = o", "out"},
		{"hotsniff --config.file x run --log.lev", "--log.level"},
		{"hotsniff run --port ''", ""},
		{"hotsniff completion z", "zsh"},
		{"hotsniff read /etc/hostna", "/etc/hostname"},
		{"hotsniff check-config /etc/hostna", "/etc/hostname"},
		{"hotsniff run --web.config.file /etc/hostna", "/etc/hostname"},
	} {
		if got := strings.Join(complete(strings.Fields(c.line)...), " "); got != c.want {
			t.Errorf("%s: got %q; want %q", c.line, got, c.want)
		}
	}
	if got := complete("hotsniff", "''"); !slices.Contains(got, "run") || slices.Contains(got, "man") {
		t.Errorf("commands: got %q; want those of --help", got)
	}
}

func TestFishCompletes(t *testing.T) {
	path := script(t, "fish", "hotsniff.fish")
	for line, want := range map[string]string{
		"hotsniff ver":                       "version",
		"hotsniff run --web.listen":          "--web.listen-address",
		"hotsniff run --capture.direction o": "out",
		"hotsniff completion z":              "zsh",
	} {
		got := shellOutput(t, "fish", "--no-config", "-c", "source "+path+"; complete -C '"+line+"'")
		if len(got) == 0 || got[0] != want {
			t.Errorf("%s: got %q; want %s first", line, got, want)
		}
	}
}

func TestZshReadsTheScript(t *testing.T) {
	path := script(t, "zsh", "_hotsniff")
	dir := filepath.Dir(path)
	got := shellOutput(t, "zsh", "-f", "-c", "fpath=("+dir+" $fpath); autoload -U compinit; compinit -u -D; echo ${_comps[hotsniff]}; autoload +X _hotsniff && echo loaded; zsh -n "+path+" && echo parsed")
	if strings.Join(got, " ") != "_hotsniff loaded parsed" {
		t.Errorf("got %q; want the function bound, loaded and parsed", got)
	}
}

// TestManualPage: the page has every flag and the formatter has no complaint.
func TestManualPage(t *testing.T) {
	page := printed(t, "man")
	for _, want := range []string{`.B \-\-web.listen\-address=`, `Variable: HOTSNIFF_PUBLISH_REDIS_URL`, `.SS hotsniff read`, ".SH EXIT STATUS"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "${") {
		t.Error("the page has a variable that was not replaced")
	}
	path := filepath.Join(t.TempDir(), "hotsniff.8")
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	cmd := exec.Command(testkit.Program(t, "groff"), "-man", "-Tutf8", "-ww", "-z", path)
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil || errs.Len() > 0 {
		t.Errorf("groff: %v\n%s", err, errs.String())
	}
}
