package testkit

import (
	"os"
	"os/exec"
	"strconv"
)

// Tester is the part of a *testing.T that Program needs.
type Tester interface {
	Helper()
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Program returns the path of a program that a test runs. Where it is not
// installed the test is skipped, or fails in continuous integration (the
// variable CI), where a skipped test would go unnoticed.
func Program(t Tester, name string) string {
	t.Helper()
	bin, err := exec.LookPath(name)
	if err == nil {
		return bin
	}
	Missing(t, "%s is not installed (scripts/setup.sh installs it)", name)
	return ""
}

// Missing ends a test that lacks what scripts/setup.sh installs, as Program
// does. What a test lacks by its user's rights is not meant: it skips.
func Missing(t Tester, format string, args ...any) {
	t.Helper()
	if ci, err := strconv.ParseBool(os.Getenv("CI")); err == nil && ci {
		t.Fatalf(format, args...)
		return
	}
	t.Skipf(format, args...)
}
