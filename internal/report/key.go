package report

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// EscapeKey returns key as a valid UTF-8 string and, when it was not valid,
// its bytes in base64 as well; invalid bytes then stand as \xNN.
func EscapeKey(key []byte) (text, base64Text string) {
	if utf8.Valid(key) {
		return string(key), ""
	}
	var b strings.Builder
	for rest := key; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, rest[0])
		} else {
			b.Write(rest[:n])
		}
		rest = rest[n:]
	}
	return b.String(), base64.StdEncoding.EncodeToString(key)
}

// Raw returns the bytes of the key as they were on the wire.
func (k *Key) Raw() []byte {
	if k.KeyBase64 != "" {
		if raw, err := base64.StdEncoding.DecodeString(k.KeyBase64); err == nil {
			return raw
		}
	}
	return []byte(k.Key)
}

// PrintableKey returns s with everything that a terminal could obey, hide or
// reorder (controls, format and bidirectional characters, odd spaces) as an
// escape, cut to at most width runes with "…" in the middle. width 0 keeps all.
func PrintableKey(s string, width int) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r) && !unicode.Is(unicode.Mn, r) && !unicode.Is(unicode.Me, r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
	}
	out := b.String()
	if out == "" {
		return `""`
	}
	if runes := []rune(out); width > 2 && len(runes) > width {
		head := (width - 1) / 2
		return string(runes[:head]) + "…" + string(runes[len(runes)-(width-1-head):])
	}
	return out
}
