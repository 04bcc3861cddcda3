package export

import (
	"fmt"
	"hash/fnv"
	"unicode/utf8"

	"github.com/hotsniff/hotsniff/internal/report"
)

// maxLabelBytes bounds a key as a label value: Prometheus keeps every label in
// memory for as long as the series lives.
const maxLabelBytes = 128

// keyLabel returns key as a label value: valid UTF-8, and where it is long its
// head with a hash of the whole, so that long keys stay apart.
func keyLabel(key []byte) string {
	text, _ := report.EscapeKey(key)
	if len(text) <= maxLabelBytes {
		return text
	}
	h := fnv.New32a()
	h.Write(key)
	suffix := fmt.Sprintf("…#%08x", h.Sum32())
	cut := maxLabelBytes - len(suffix)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + suffix
}
