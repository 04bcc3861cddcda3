package hotlist

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/hotsniff/hotsniff/internal/testkit"
)

// TestImports keeps the package light for those who import it: no packet
// capture, no cgo, no sketches, no Prometheus.
func TestImports(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", ".")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		testkit.Missing(t, "go list: %v", err)
	}
	allowed := []string{
		"github.com/hotsniff/hotsniff/hotlist", "github.com/redis/go-redis/v9", "github.com/maypok86/otter/v2",
		"golang.org/x/time", "golang.org/x/sync", "golang.org/x/sys", "github.com/cespare/xxhash/v2", "go.uber.org/atomic", // the last three by go-redis
	}
	for _, pkg := range strings.Fields(string(out)) {
		if first, _, _ := strings.Cut(pkg, "/"); !strings.Contains(first, ".") || strings.HasPrefix(pkg, "vendor/") {
			continue // the standard library
		}
		if !slices.ContainsFunc(allowed, func(a string) bool { return pkg == a || a != allowed[0] && strings.HasPrefix(pkg, a+"/") }) {
			t.Errorf("depends on %s", pkg)
		}
	}
}
