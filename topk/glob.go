package topk

// checkGlob returns what is wrong with a pattern, "" if nothing.
func checkGlob(p string) string {
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
			if i == len(p) {
				return "glob ends with a backslash"
			}
		case '[':
			end := classEnd([]byte(p), i)
			if end < 0 {
				return "glob has an unclosed ["
			}
			i = end
		}
	}
	return ""
}

// literalBytes is the length by which rules are ordered.
func literalBytes(r *Rule) int {
	if r.Match != MatchGlob {
		return len(r.Pattern)
	}
	p, n := []byte(r.Pattern), 0
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '*', '?':
		case '\\':
			i++
			n++
		case '[':
			i = classEnd(p, i)
		default:
			n++
		}
	}
	return n
}

// classEnd returns the index of the bracket that closes the class at i, -1 if
// there is none. A bracket right after the opening one or the ^ is literal only
// when escaped.
func classEnd(p []byte, i int) int {
	for i++; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case ']':
			return i
		}
	}
	return -1
}

// matchGlob reports whether all of s matches a pattern that checkGlob accepted.
// On a mismatch only the last star is tried again, one byte further on: at most
// len(p)*len(s) steps whatever the key.
func matchGlob(p, s []byte) bool {
	i, j := 0, 0
	star, retry := -1, 0
	for j < len(s) {
		if i < len(p) && p[i] == '*' {
			star, retry = i, j
			i++
			continue
		}
		if i < len(p) {
			if next, ok := matchOne(p, i, s[j]); ok {
				i = next
				j++
				continue
			}
		}
		if star < 0 {
			return false
		}
		retry++
		i, j = star+1, retry
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// matchOne compares the pattern element at i with one byte and returns the
// index of the next element.
func matchOne(p []byte, i int, c byte) (next int, ok bool) {
	switch p[i] {
	case '?':
		return i + 1, true
	case '\\':
		return i + 2, p[i+1] == c
	case '[':
		end := classEnd(p, i)
		return end + 1, inClass(p[i+1:end], c)
	default:
		return i + 1, p[i] == c
	}
}

// inClass reports whether the class body set holds c.
func inClass(set []byte, c byte) bool {
	negate := len(set) > 0 && set[0] == '^'
	if negate {
		set = set[1:]
	}
	found := false
	for i := 0; i < len(set); i++ {
		lo := set[i]
		if lo == '\\' {
			i++
			lo = set[i]
		}
		hi := lo
		if i+2 < len(set) && set[i+1] == '-' {
			hi = set[i+2]
			i += 2
			if hi == '\\' && i+1 < len(set) {
				i++
				hi = set[i]
			}
		}
		found = found || min(lo, hi) <= c && c <= max(lo, hi)
	}
	return found != negate
}
