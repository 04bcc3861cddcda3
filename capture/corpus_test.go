package capture

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

// captures lists the capture files that tests may read: the small ones of this
// package and, where it is there, the shared corpus beside the repository.
func captures(t testing.TB) []string {
	t.Helper()
	var out []string
	for _, dir := range []string{"testdata", filepath.Join("..", "..", "shared", "captures")} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".pcap") || strings.HasSuffix(e.Name(), ".pcapng") {
				out = append(out, filepath.Join(dir, e.Name()))
			}
		}
	}
	if len(out) == 0 {
		t.Skip("no capture files here")
	}
	return out
}
