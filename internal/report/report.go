package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Schema is the value of Report.Schema.
const Schema = "hotsniff.report/v1"

// Report is one view of one node: who was hot in a window, and what could not
// be seen. Counts of keys, commands and accesses are scaled to the full
// traffic by the sampling that was in force.
type Report struct {
	Schema          string            `json:"schema"`
	Node            string            `json:"node"`
	Sources         []string          `json:"sources"`
	From            time.Time         `json:"from"`
	To              time.Time         `json:"to"`
	WindowSeconds   float64           `json:"window_seconds"`
	Requests        uint64            `json:"requests"`
	Accesses        uint64            `json:"accesses"`
	SampledAccesses uint64            `json:"sampled_accesses"`
	SampleEvery     int               `json:"sample_every"`
	DistinctKeys    uint64            `json:"distinct_keys"`
	Keys            []Key             `json:"keys"` // by accesses, then key
	Commands        map[string]uint64 `json:"commands"`
	Capture         Capture           `json:"capture"`
}

// Key is one key of a Report. Shares are 0..1 of all key accesses at its port
// in the window; ShareLow and ShareHigh bound the true share.
type Key struct {
	Key               string            `json:"key"`
	KeyBase64         string            `json:"key_base64,omitempty"` // set when the key is not valid UTF-8
	KeyBytes          int64             `json:"key_bytes,omitempty"`  // set when Key is a prefix: the full length
	Port              uint16            `json:"port"`
	State             string            `json:"state"`
	Since             *time.Time        `json:"since,omitempty"` // since when it is in the hot list
	Share             float64           `json:"share"`
	ShareLow          float64           `json:"share_low"`
	ShareHigh         float64           `json:"share_high"`
	Accesses          uint64            `json:"accesses"`
	AccessesError     uint64            `json:"accesses_error"`
	AccessesPerSecond float64           `json:"accesses_per_second"`
	Reads             uint64            `json:"reads"`
	Writes            uint64            `json:"writes"`
	RequestBytes      uint64            `json:"request_bytes"`
	ReplyBytes        uint64            `json:"reply_bytes"`
	ReplyEstimated    bool              `json:"-"` // some reply bytes were shared out over pipelined requests
	Clients           uint64            `json:"clients"`
	TopClient         *TopClient        `json:"top_client,omitempty"`
	Commands          map[string]uint64 `json:"commands"`
	Rule              string            `json:"rule"`
	Action            string            `json:"action"`
	History           []uint32          `json:"-"` // accesses per second, oldest first, the last one not over; nil where there is none
}

// TopClient is the client with the most accesses of a key.
type TopClient struct {
	Address string  `json:"address"`
	Share   float64 `json:"share"` // of the key's accesses
}

// Capture says what was captured and what was missed, since the start.
type Capture struct {
	Packets              uint64            `json:"packets"`
	Bytes                uint64            `json:"bytes"`
	Dropped              uint64            `json:"dropped"`
	Connections          uint64            `json:"connections"`
	EncryptedConnections uint64            `json:"encrypted_connections"`
	Gaps                 uint64            `json:"gaps"`
	DecodeErrors         map[string]uint64 `json:"decode_errors"`
}

// WriteJSON writes r as indented JSON with a final newline.
func (r *Report) WriteJSON(w io.Writer) error {
	return WriteJSON(w, r, " ")
}

// WriteJSON writes v as JSON with a final newline, indented by indent. Whatever
// a terminal could obey, hide or reorder stands as a \u escape, which means the
// same to every JSON reader: people look at JSON in terminals.
func WriteJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escapeUnprintable(b.Bytes()))
	return err
}

// escapeUnprintable replaces unprintable characters of JSON text. Outside
// strings JSON is printable ASCII and white space, so only strings change.
func escapeUnprintable(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == '\n' || unicode.IsPrint(r):
			out = append(out, text[:n]...)
		case r > 0xFFFF:
			hi, lo := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[n:]
	}
	return out
}
