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

func analyze(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(testkit.Program(t, "systemd-analyze"), args...).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestUnitVerifies: systemd understands every line and complains of none.
func TestUnitVerifies(t *testing.T) {
	text, err := os.ReadFile("hotsniff.service")
	if err != nil {
		t.Fatal(err)
	}
	// verify wants the program to be there.
	text = []byte(strings.ReplaceAll(string(text), "/usr/bin/hotsniff", "/bin/true"))
	path := filepath.Join(t.TempDir(), "hotsniff.service")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if out := analyze(t, "verify", "--man=no", path); out != "" {
		t.Errorf("systemd-analyze verify: got %q; want nothing", out)
	}
}

// TestUnitIsConfined: 2.0 of 10 is what systemd calls OK; a plain unit has 9.6.
func TestUnitIsConfined(t *testing.T) {
	out := analyze(t, "security", "--no-pager", "--offline=yes", "--threshold=20", "hotsniff.service")
	for _, line := range strings.Split(out, "\n") {
		if strings.Contains(line, "Overall") {
			t.Log(strings.TrimSpace(line))
		}
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
