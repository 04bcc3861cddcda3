package privacy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// Mode is what becomes of key names.
type Mode uint8

// The modes.
const (
	Plain    Mode = iota // shown as they are
	Pattern              // numbers, identifiers and addresses become *
	Hash                 // replaced by a keyed hash
	Truncate             // only the first characters
)

// Modes are the names of the modes, in their order.
var Modes = []string{"plain", "pattern", "hash", "truncate"}

// ClientMode is what becomes of client addresses.
type ClientMode uint8

// The modes of clients.
const (
	ClientsPlain   ClientMode = iota // shown as they are
	ClientsNetwork                   // only the network: /24 of IPv4, /48 of IPv6
	ClientsNone                      // not shown; they are still counted
)

// ClientModes are the names of the modes of clients, in their order.
var ClientModes = []string{"plain", "network", "none"}

// Rewrite replaces what matches a regular expression (RE2 syntax) in pattern
// mode; To may name groups of it as $1 or ${name}.
type Rewrite struct{ Match, To string }

// Config says what a Policy does. The zero value shows everything.
type Config struct {
	Keys     Mode
	Secret   []byte    // of Hash, at least minSecretBytes
	Keep     int       // characters that Truncate keeps, at least 1
	Rewrites []Rewrite // of Pattern, tried before the built-in ones, in order
	Deny     []string  // globs (*, ?) of keys of which nothing is shown, in every mode
	Clients  ClientMode
}

// Hidden is the name under which all denied keys are shown.
const Hidden = "(hidden)"

const (
	// minSecretBytes is the least secret that cannot be tried out.
	minSecretBytes = 16
	// hashChars is how much of a hash is shown: 64 bits keep a billion keys
	// apart with a chance of collision of 3 %, a list of 1,000 surely.
	hashChars = 16
	// maxRemembered bounds the names remembered: a daemon shows a few thousand
	// at most (200 keys, two windows, 32 ports), so that each is worked out once.
	maxRemembered = 16384
)

// Policy turns names into what may be shown. All its methods are safe for
// concurrent use.
type Policy struct {
	cfg      Config
	rewrites []rewrite
	deny     []*regexp.Regexp

	mu    sync.Mutex
	known map[string]string
}

// New returns the policy of cfg, nil when it shows everything as it is.
func New(cfg Config) (*Policy, error) {
	if cfg.Keys == Plain && len(cfg.Deny) == 0 && cfg.Clients == ClientsPlain {
		return nil, nil
	}
	if cfg.Keys == Hash && len(cfg.Secret) < minSecretBytes {
		return nil, fmt.Errorf("the key file needs at least %d bytes, it has %d", minSecretBytes, len(cfg.Secret))
	}
	if cfg.Keys == Truncate && cfg.Keep < 1 {
		return nil, errors.New("at least 1 character must be kept")
	}
	p := &Policy{cfg: cfg, known: map[string]string{}}
	for _, r := range cfg.Rewrites {
		match, err := regexp.Compile(r.Match)
		if err != nil {
			return nil, fmt.Errorf("rewrite: %w", err)
		}
		p.rewrites = append(p.rewrites, rewrite{match: match, to: []byte(r.To)})
	}
	p.rewrites = append(p.rewrites, builtin...)
	for _, glob := range cfg.Deny {
		p.deny = append(p.deny, globExpression(glob))
	}
	return p, nil
}

// globExpression returns the regular expression of a glob: * is any number of
// bytes, ? is one character, everything else itself.
func globExpression(glob string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(glob)
	quoted = strings.ReplaceAll(strings.ReplaceAll(quoted, `\*`, `.*`), `\?`, `.`)
	return regexp.MustCompile(`(?s)^` + quoted + `$`)
}

// Key returns the name under which key is shown. It is always true: every key
// is shown somehow.
func (p *Policy) Key(key []byte) (shown string, ok bool) {
	p.mu.Lock()
	shown, known := p.known[string(key)]
	p.mu.Unlock()
	if known {
		return shown, true
	}
	shown = p.mask(key)
	p.mu.Lock()
	if len(p.known) >= maxRemembered {
		clear(p.known)
	}
	p.known[string(key)] = shown
	p.mu.Unlock()
	return shown, true
}

// Denied reports whether nothing of key may be shown.
func (p *Policy) Denied(key []byte) bool {
	for _, d := range p.deny {
		if d.Match(key) {
			return true
		}
	}
	return false
}

func (p *Policy) mask(key []byte) string {
	if p.Denied(key) {
		return Hidden
	}
	switch p.cfg.Keys {
	case Pattern:
		return p.pattern(key)
	case Hash:
		mac := hmac.New(sha256.New, p.cfg.Secret)
		mac.Write(key)
		return "#" + hex.EncodeToString(mac.Sum(nil))[:hashChars]
	case Truncate:
		return truncate(key, p.cfg.Keep)
	}
	return string(key)
}

// truncate keeps the first n characters.
func truncate(key []byte, n int) string {
	at := 0
	for ; n > 0 && at < len(key); n-- {
		_, size := utf8.DecodeRune(key[at:])
		at += size
	}
	if at == len(key) {
		return string(key)
	}
	return string(key[:at]) + "…"
}

const (
	v4Prefix = 12     // bytes before the address in a mapped IPv4 address
	v4Shown  = 12 + 3 // of a /24
	v6Shown  = 6      // of a /48
)

// Client returns the address that is shown of a client (IPv4 as mapped); false
// when none is.
func (p *Policy) Client(address [16]byte) ([16]byte, bool) {
	switch p.cfg.Clients {
	case ClientsNone:
		return [16]byte{}, false
	case ClientsNetwork:
		keep := v6Shown
		if [v4Prefix]byte(address[:v4Prefix]) == ([v4Prefix]byte{10: 0xff, 11: 0xff}) {
			keep = v4Shown
		}
		clear(address[keep:])
	}
	return address, true
}
