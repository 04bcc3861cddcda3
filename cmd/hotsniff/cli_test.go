package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hotsniff runs the program in this process.
func hotsniff(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(context.Background(), args, stdio{strings.NewReader(stdin), &out, &errOut})
	return code, out.String(), errOut.String()
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestErrorsAreOneLineWithAHintAndNothingOnStdout(t *testing.T) {
	badKey := write(t, "bad.yml", "treshold: 1\n")
	badRule := write(t, "rule.yml", "rules:\n  - prefix: a\n    share: 7\n")
	badTable := write(t, "table.tsv", "what\n")
	noPcap := write(t, "no.pcap", "this is no capture")
	for _, c := range []struct {
		name string
		args []string
		code int
		want string // in the first line
	}{
		{"no command", nil, 2, "expected one of"},
		{"unknown command", []string{"sniff"}, 2, "unexpected argument sniff"},
		{"unknown flag", []string{"read", "--frobnicate", "x"}, 2, "unknown flag --frobnicate"},
		{"no file", []string{"read"}, 2, "expected \"<files> ...\""},
		{"missing file", []string{"read", "/nonexistent.pcap"}, 1, "/nonexistent.pcap"},
		{"not a capture", []string{"read", noPcap}, 1, "no.pcap"},
		{"bad port", []string{"read", "--port", "70000", "x.pcap"}, 2, "--port"},
		{"bad threshold", []string{"read", "--threshold", "2", "x.pcap"}, 2, "--threshold"},
		{"bad window", []string{"read", "--window", "3s", "x.pcap"}, 2, "--window"},
		{"bad format", []string{"read", "--format", "xml", "x.pcap"}, 2, "--format"},
		{"bad top", []string{"run", "--top", "100000"}, 2, "--top"},
		{"bad command table", []string{"read", "--commands.file", badTable, "x.pcap"}, 1, "table.tsv"},
		{"unknown key in the file", []string{"--config.file", badKey, "version"}, 1, `bad.yml:1: unknown key "treshold", did you mean "threshold"?`},
		{"check-config unknown key", []string{"check-config", badKey}, 1, `did you mean "threshold"?`},
		{"check-config bad rule", []string{"check-config", badRule}, 1, "rule.yml:3: rules: share"},
		{"check-config missing", []string{"check-config", "/nonexistent"}, 1, "/nonexistent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errOut := hotsniff(t, "", c.args...)
			first, _, _ := strings.Cut(errOut, "\n")
			if code != c.code || !strings.HasPrefix(first, "hotsniff: ") || !strings.Contains(first, c.want) {
				t.Errorf("got code %d, %q; want code %d, %q", code, errOut, c.code, c.want)
			}
			if out != "" {
				t.Errorf("got %q on stdout; want nothing", out)
			}
		})
	}
}

func TestConfigFileAndEnvironmentGiveFlags(t *testing.T) {
	good := write(t, "good.yml", "port: [6379, 7000-7002]\nthreshold: 0.05\nweb:\n  listen-address: 127.0.0.1:1\nrules:\n  - prefix: \"u:\"\n    share: 0.1\n")
	if code, out, errOut := hotsniff(t, "", "check-config", good); code != 0 || !strings.HasSuffix(out, "good.yml: ok\n") {
		t.Errorf("check-config: got %d, %q, %q; want ok", code, out, errOut)
	}
	bad := write(t, "bad.yml", "threshold: 7\n")
	code, _, errOut := hotsniff(t, "", "--config.file="+bad, "read", "x.pcap")
	if code != 2 || !strings.Contains(errOut, "not 7") {
		t.Errorf("the file's threshold is not used: %d, %q", code, errOut)
	}
	t.Setenv("HOTSNIFF_THRESHOLD", "9")
	if _, _, errOut = hotsniff(t, "", "--config.file", bad, "read", "x.pcap"); !strings.Contains(errOut, "not 9") {
		t.Errorf("the environment does not beat the file: %q", errOut)
	}
	if _, _, errOut = hotsniff(t, "", "--config.file", bad, "read", "--threshold", "8", "x.pcap"); !strings.Contains(errOut, "not 8") {
		t.Errorf("the flag does not beat the environment: %q", errOut)
	}
}

func TestHelpAndVersion(t *testing.T) {
	if code, out, _ := hotsniff(t, "", "--help"); code != 0 || !strings.Contains(out, "read") || !strings.Contains(out, "run") {
		t.Errorf("--help: got %d, %q", code, out)
	}
	if code, out, _ := hotsniff(t, "", "read", "--help"); code != 0 || !strings.Contains(out, "1,000,000 distinct keys") {
		t.Errorf("read --help: got %d, %q; want the limit of exact counting", code, out)
	}
	if code, out, _ := hotsniff(t, "", "version"); code != 0 || !strings.HasPrefix(out, "hotsniff ") {
		t.Errorf("version: got %d, %q", code, out)
	}
}
