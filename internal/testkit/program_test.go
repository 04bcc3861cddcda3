package testkit

import "testing"

// told is a test that notes how it was ended.
type told struct{ failed, skipped bool }

func (n *told) Helper()               {}
func (n *told) Fatalf(string, ...any) { n.failed = true }
func (n *told) Skipf(string, ...any)  { n.skipped = true }

func TestAMissingProgramFailsInCI(t *testing.T) {
	for _, c := range []struct {
		ci   string
		want told
	}{{"true", told{failed: true}}, {"1", told{failed: true}}, {"", told{skipped: true}}, {"false", told{skipped: true}}} {
		t.Setenv("CI", c.ci)
		var got told
		Program(&got, "no-such-program")
		if got != c.want {
			t.Errorf("CI=%q: got %+v; want %+v", c.ci, got, c.want)
		}
	}
	if Program(t, "sh") == "" {
		t.Error("sh was not found")
	}
}
