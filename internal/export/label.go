package export

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"unicode/utf8"

	"github.com/hotsniff/hotsniff/internal/report"
)

// maxLabelBytes bounds a key as a label value: Prometheus keeps every label in
// memory for as long as the series lives.
const maxLabelBytes = 128

// keyLabel returns key as a label value: printable, so that no dashboard shows
// it reordered or broken up, and where it is long its head with a hash of all
// that is known of it, so that long keys stay apart: length is its full one,
// of which key may be the beginning. The empty key is "" with the quotes: an
// empty label is none to Prometheus.
func keyLabel(key []byte, length int64) string {
	text := report.PrintableKey(string(key), 0)
	if len(text) <= maxLabelBytes {
		return text
	}
	h := fnv.New32a()
	h.Write(key)
	if length > int64(len(key)) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(length)))
	}
	suffix := fmt.Sprintf("…#%08x", h.Sum32())
	cut := maxLabelBytes - len(suffix)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + suffix
}
