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
	badPin := write(t, "pin.yml", "pinned:\n  - key: a\n    form: 1\n")
	nobody := "redis://127.0.0.1:1" // nothing listens at port 1
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
		{"check-config bad pin", []string{"check-config", badPin}, 1, `pin.yml:3: pinned: unknown field "form", did you mean "from"?`},
		{"watch without a URL", []string{"watch"}, 2, "--redis-url"},
		{"watch where no Redis is", []string{"watch", "--redis-url", nobody}, 1, "redis: subscribe: "},
		{"watch once where no Redis is", []string{"watch", "--once", "--redis-url", nobody}, 1, "redis: subscribe: "},
		{"watch with a password in the URL", []string{"watch", "--redis-url", "redis://u:S3cret@127.0.0.1:1"}, 2, "must not hold a password"},
		{"watch with a bad URL", []string{"watch", "--redis-url", "http://127.0.0.1"}, 2, "scheme must be"},
		{"watch with a bad format", []string{"watch", "--format", "csv", "--redis-url", nobody}, 2, "--format"},
		{"watch with a missing password file", []string{"watch", "--password-file", "/nonexistent", "--redis-url", nobody}, 2, "password file"},
		{"a password is no flag", []string{"watch", "--password", "S3cret", "--redis-url", nobody}, 2, "unknown flag --password"},
		{"pin without a key", []string{"pin", "--redis-url", nobody}, 2, "expected \"<key>\""},
		{"pin where no Redis is", []string{"pin", "k", "--redis-url", nobody}, 1, "redis: pin: "},
		{"ban where no Redis is", []string{"ban", "k", "--redis-url", nobody}, 1, "redis: ban: "},
		{"unpin where no Redis is", []string{"unpin", "k", "--redis-url", nobody}, 1, "redis: unpin: "},
		{"pin for no time", []string{"pin", "k", "--ttl", "0s", "--redis-url", nobody}, 2, "--ttl"},
		{"ban for ever", []string{"ban", "k", "--ttl", "100000h", "--redis-url", nobody}, 2, "--ttl"},
		{"pin from a bad time", []string{"pin", "k", "--from", "tomorrow", "--redis-url", nobody}, 2, "--from"},
		{"pin with a bad action", []string{"pin", "k", "--action", "burn", "--redis-url", nobody}, 2, "--action"},
		{"pin with too many copies", []string{"pin", "k", "--copies", "1000", "--redis-url", nobody}, 2, "--copies"},
		{"pin with bad base64", []string{"pin", "*", "--base64", "--redis-url", nobody}, 2, "base64"},
		{"ban a key that is too long", []string{"ban", strings.Repeat("k", 1025), "--redis-url", nobody}, 2, "1024 bytes"},
		{"top without a terminal", []string{"top"}, 2, "standard output is no terminal"},
		{"top with a bad window", []string{"top", "--once", "--window", "7s"}, 2, "--window"},
		{"top with a bad speed", []string{"top", "--once", "--speed", "fast"}, 2, "--speed"},
		{"top too often", []string{"top", "--once", "--interval", "1ms"}, 2, "--interval"},
		{"top of too many keys", []string{"top", "--once", "--top", "1000"}, 2, "--top"},
		{"top of two things", []string{"top", "--once", "--url", "http://h", "--read", "x"}, 2, "choose one"},
		{"top of a bad URL", []string{"top", "--once", "--url", "ftp://u:S3cret@h"}, 2, "--url"},
		{"top of a URL that is none", []string{"top", "--once", "--url", "http://u:S3cret@h:x"}, 2, "--url"},
		{"top of a missing authority", []string{"top", "--once", "--url", "https://h", "--ca-file", "/nonexistent"}, 1, "/nonexistent"},
		{"top where no daemon is", []string{"top", "--once", "--url", "http://u:S3cret@127.0.0.1:1"}, 1, "127.0.0.1:1"},
		{"top of a missing file", []string{"top", "--once", "--read", "/nonexistent.pcap"}, 1, "/nonexistent.pcap"},
		{"top of no capture", []string{"top", "--once", "--read", noPcap}, 1, "no.pcap"},
		{"top of no interface", []string{"top", "--once", "--interface", "nonexistent0"}, 1, "capture"},
		{"check-config missing", []string{"check-config", "/nonexistent"}, 1, "/nonexistent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errOut := hotsniff(t, "", c.args...)
			first, _, _ := strings.Cut(errOut, "\n")
			if code != c.code || !strings.HasPrefix(first, "hotsniff: ") || !strings.Contains(first, c.want) {
				t.Errorf("got code %d, %q; want code %d, %q", code, errOut, c.code, c.want)
			}
			if strings.Contains(errOut, "S3cret@") {
				t.Errorf("%q shows the password", errOut)
			}
			if c.code == 1 && strings.Contains(first, "redis: ") && !strings.Contains(errOut, "\nhint: ") {
				t.Errorf("got %q; want a hint", errOut)
			}
			if out != "" {
				t.Errorf("got %q on stdout; want nothing", out)
			}
		})
	}
}

func TestConfigFileAndEnvironmentGiveFlags(t *testing.T) {
	good := write(t, "good.yml", "port: [6379, 7000-7002]\nthreshold: 0.05\nweb:\n  listen-address: 127.0.0.1:1\npublish:\n  cluster: true\n  redis-addresses: [\"a:1\", \"b:2\"]\n  manual: false\npinned: [sale]\nbanned:\n  - key: noise\nrules:\n  - prefix: \"u:\"\n    share: 0.1\n")
	if code, out, errOut := hotsniff(t, "", "check-config", good); code != 0 || !strings.HasSuffix(out, "good.yml: ok\n") {
		t.Errorf("check-config: got %d, %q, %q; want ok", code, out, errOut)
	}
	bad := write(t, "bad.yml", "threshold: 7\n")
	code, _, errOut := hotsniff(t, "", "--config.file="+bad, "read", "x.pcap")
	if code != 1 || !strings.Contains(errOut, "bad.yml:1: threshold: want 0.001 to 1, not 7") {
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
