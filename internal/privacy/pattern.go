package privacy

import (
	"bytes"
	"regexp"
)

// rewrite replaces what matches by to, where only (if set) agrees.
type rewrite struct {
	match *regexp.Regexp
	to    []byte
	only  func(found []byte) bool
}

var star = []byte("*")

// builtin are the patterns that stand for a person or a machine, the more
// special ones first: what they leave, the general ones find.
var builtin = []rewrite{
	{match: regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+`), to: star},                              // e-mail
	{match: regexp.MustCompile(`[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}`), to: star},                             // UUID, RFC 9562
	{match: regexp.MustCompile(`[0-9]{1,3}(\.[0-9]{1,3}){3}`), to: star},                                                    // IPv4
	{match: regexp.MustCompile(`[0-9a-fA-F]{1,4}(:[0-9a-fA-F]{0,4}){1,6}:[0-9a-fA-F]{1,4}`), to: star, only: looksLikeIPv6}, // IPv6
	{match: regexp.MustCompile(`[0-9a-fA-F]{8,}`), to: star},                                                                // hashes, object ids
	{match: regexp.MustCompile(`[A-Za-z0-9]{20,}`), to: star, only: hasDigit},                                               // tokens
	{match: regexp.MustCompile(`[0-9]+`), to: star},                                                                         // numbers
}

// looksLikeIPv6 tells addresses from keys such as "a:b:1": those are not cut by
// "::" and have fewer than eight groups.
func looksLikeIPv6(found []byte) bool {
	return bytes.Contains(found, []byte("::")) && len(found) > len("a::b") || bytes.Count(found, []byte(":")) == 7
}

func hasDigit(found []byte) bool { return bytes.ContainsAny(found, "0123456789") }

// pattern replaces everything that a pattern finds.
func (p *Policy) pattern(key []byte) string {
	for i := range p.rewrites {
		r := &p.rewrites[i]
		switch {
		case r.only == nil:
			key = r.match.ReplaceAll(key, r.to)
		default:
			key = r.match.ReplaceAllFunc(key, func(found []byte) []byte {
				if r.only(found) {
					return r.to
				}
				return found
			})
		}
	}
	return string(key)
}
