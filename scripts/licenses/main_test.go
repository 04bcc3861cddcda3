package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEverythingLinkedIsPermissive holds for what go.mod has today and for
// what somebody adds tomorrow.
func TestEverythingLinkedIsPermissive(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	var out strings.Builder
	if err := run(&out, false, true); err != nil {
		t.Error(err)
	}
	if n := strings.Count(out.String(), "\n"); n < 15 {
		t.Errorf("got %d parts only:\n%s", n, out.String())
	}
	t.Log("\n" + out.String())
}

func TestIdentify(t *testing.T) {
	own, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	musl, err := os.ReadFile("../../packaging/licenses/musl.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		texts []string
		want  string
		bad   bool
	}{
		{"Apache", []string{string(own)}, "Apache-2.0", false},
		{"MIT", []string{string(musl)}, "MIT", false},
		{"a notice beside a license", []string{string(own), "Copyright somebody"}, "Apache-2.0", false},
		{"nothing", nil, "", true},
		{"a notice alone", []string{"Copyright somebody. All rights reserved."}, "", true},
		{"GPL", []string{"GNU GENERAL\n   PUBLIC LICENSE Version 2"}, "", true},
		{"a second file that is not permissive", []string{string(own), "Mozilla Public License Version 2.0"}, "Apache-2.0", true},
	} {
		ids, err := identify(c.texts)
		if got := strings.Join(ids, ", "); got != c.want || (err != nil) != c.bad {
			t.Errorf("%s: got %q, %v; want %q, error %v", c.name, got, err, c.want, c.bad)
		}
	}
}
