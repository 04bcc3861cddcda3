package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hotsniff/hotsniff/internal/testkit"
)

// unit reads the unit as the values of each key, in order.
func unit(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("hotsniff.service")
	if err != nil {
		t.Fatal(err)
	}
	values := map[string][]string{}
	for _, line := range strings.Split(string(text), "\n") {
		if key, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			values[key] = append(values[key], value)
		}
	}
	return values
}

func analyze(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := exec.Command(testkit.Program(t, "systemd-analyze"), args...).CombinedOutput()
	return string(out), err
}

// edited returns the path of a copy of the unit with one text replaced.
func edited(t *testing.T, old, replacement string) string {
	t.Helper()
	text, err := os.ReadFile("hotsniff.service")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		t.Fatalf("the unit has no %q", old)
	}
	// verify wants the program to be there.
	changed := strings.ReplaceAll(strings.ReplaceAll(string(text), old, replacement), "/usr/bin/hotsniff", "/bin/true")
	path := filepath.Join(t.TempDir(), "hotsniff.service")
	if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestUnitVerifies: systemd understands every line and complains of none, but
// does of a key that is misspelt.
func TestUnitVerifies(t *testing.T) {
	if out, err := analyze(t, "verify", "--man=no", edited(t, "Nice=", "Nice=")); out != "" || err != nil {
		t.Errorf("systemd-analyze verify: got %q, %v; want nothing", out, err)
	}
	if out, _ := analyze(t, "verify", "--man=no", edited(t, "Nice=", "Nise=")); !strings.Contains(out, "Nise") {
		t.Errorf("systemd-analyze verify of a misspelt key: got %q; want a complaint", out)
	}
}

// TestUnitIsConfined: 2.0 of 10 is what systemd calls OK; a plain unit has
// 9.6, and this one is above without its filter of system calls.
func TestUnitIsConfined(t *testing.T) {
	confined := func(path string) (string, error) {
		return analyze(t, "security", "--no-pager", "--offline=yes", "--threshold=20", path)
	}
	out, err := confined("hotsniff.service")
	_, overall, found := strings.Cut(out, "Overall")
	if err != nil || !found {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
	t.Log("Overall", strings.TrimSpace(overall))
	if out, err := confined(edited(t, "SystemCallFilter=", "#")); err == nil {
		t.Errorf("systemd-analyze security without a filter: got\n%s\nwant an error", out)
	}
}

// TestUnitLetsCaptureWork lists what breaks capture when somebody tightens or
// loosens the unit: the score alone would not tell.
func TestUnitLetsCaptureWork(t *testing.T) {
	u := unit(t)
	one := func(key, want string) {
		t.Helper()
		if got := u[key]; len(got) != 1 || got[0] != want {
			t.Errorf("%s: got %q; want %q", key, got, want)
		}
	}
	one("Type", "notify")
	one("NotifyAccess", "main")
	one("CapabilityBoundingSet", "CAP_NET_RAW")
	one("AmbientCapabilities", "CAP_NET_RAW")
	one("RestrictAddressFamilies", "AF_PACKET AF_INET AF_INET6 AF_UNIX AF_NETLINK")
	one("ExecReload", "/bin/kill -HUP $MAINPID")
	if got := u["SystemCallFilter"]; !slices.Equal(got, []string{"@system-service", "~@privileged @resources"}) {
		t.Errorf("SystemCallFilter: got %q", got)
	}
	for _, key := range []string{"PrivateUsers", "PrivateNetwork", "User"} {
		if u[key] != nil {
			t.Errorf("%s is set: a capture has no packets then", key)
		}
	}
	for _, key := range []string{"WatchdogSec", "MemoryMax", "CPUQuota", "Nice", "OOMScoreAdjust", "LoadCredential", "DynamicUser",
		"MemoryDenyWriteExecute", "PrivateDevices", "ProtectSystem"} {
		if len(u[key]) != 1 {
			t.Errorf("%s: got %q; want one value", key, u[key])
		}
	}
}
