package hotlist

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Schema is the value of the field schema of every list.
const Schema = "hotsniff.list/v1"

// Names of the channel and keys in Redis, all below one prefix so that one ACL
// pattern covers them and a sniffer can leave them out of its counts.
const (
	// Prefix begins every key and channel that hotsniff uses.
	Prefix = "hotsniff:"
	// DefaultChannel carries lists, and notes of manual changes.
	DefaultChannel = Prefix + "hot"
	// ListKeyPrefix followed by the node is the key of its retained list.
	ListKeyPrefix = Prefix + "list:"
	// NodesKey is a ZSET of nodes, scored by the unix millisecond at which
	// the retained list of each expires.
	NodesKey = Prefix + "nodes"
	// ManualKey is a hash of pinned and banned keys.
	ManualKey = Prefix + "manual"
)

// Bounds of a list. See the package comment for what happens at each.
const (
	// MaxListBytes: 100 keys of the longest kind take 0.7 MB; a 1 MiB
	// message four times a second still drains to a subscriber on a slow
	// link before Redis' output buffer limit for pub/sub cuts it off.
	MaxListBytes = 1 << 20
	// MaxKeys is ten times the default length of the daemon's list.
	MaxKeys = 1000
	// MaxKeyBytes is how much of a key the daemon keeps: a longer key is
	// known by its prefix only and must not be listed.
	MaxKeyBytes = 1024
	// MaxNodeBytes bounds node names: they become part of a key.
	MaxNodeBytes = 255
	// MaxTTLMs bounds the ttl of a list: ten minutes, so that a forged
	// list cannot hold for long once its sender stopped.
	MaxTTLMs = 10 * 60 * 1000
	// MaxCopies bounds the copies of a key: a subscriber writes that many.
	MaxCopies = 64

	// maxRate is above anything a server does and far from overflowing a sum.
	maxRate = 1e12
	// maxTime is the year 2286 in unix milliseconds.
	maxTime = 1e13
	// maxSequence keeps seq exact in readers that hold numbers as float64.
	maxSequence = 1 << 53
)

// Errors of Decode and Encode, for callers that count them apart.
var (
	// ErrSchema: not a hot list at all (another kind of message on the channel).
	ErrSchema = errors.New("not a hotsniff.list message")
	// ErrVersion: a hot list of a version that this package does not read.
	ErrVersion = errors.New("unsupported hotsniff.list version")
	// ErrTooLarge: more bytes or keys than a list may have.
	ErrTooLarge = errors.New("hot list too large")
	// ErrMalformed: JSON that is broken or lacks what a list must have.
	ErrMalformed = errors.New("malformed hot list")
)

// List is the complete hot list of one node at one moment. Times are unix
// milliseconds on the node's clock, as on the wire. A list that was handed to
// anybody is never changed.
type List struct {
	Node    string // who publishes: host or configured name
	EpochMs int64  // start of the publishing process
	Seq     uint64 // grows by one with each list of an epoch
	AtMs    int64  // when the list was made
	TTLMs   int64  // how long it holds unless renewed

	WindowSeconds     float64 // length of the window behind the shares
	SampleEvery       int64   // 1: every packet was looked at; N: one in N
	AccessesPerSecond float64 // all key accesses of the node, scaled by sampling
	Entries           []Entry // sorted as the publisher chose, usually by share
}

// Entry is one key of a list.
type Entry struct {
	Key  string // raw bytes, at most MaxKeyBytes; may be any bytes, also none
	Port uint16 // server port; 0 for a manual entry that holds for any

	State             State
	Share             float64 // of the accesses of its port, 0 to 1
	ShareLow          float64 // lower confidence bound of Share
	AccessesPerSecond float64
	WriteRatio        float64 // writes / accesses, 0 to 1
	Clients           int64   // distinct client addresses, estimated
	SinceMs           int64   // when the key entered the list

	Action Action
	Reason Reason
	TTLMs  int64 // advised life of a local copy
	Copies int   // advised number of copies, 0 when copies do not help
}

// wireList and wireEntry are the JSON. Numbers are wide so that a value out of
// range is clamped rather than failing the message.
type wireList struct {
	Schema            string      `json:"schema"`
	Node              string      `json:"node"`
	Epoch             int64       `json:"epoch"`
	Seq               int64       `json:"seq"`
	At                int64       `json:"at"`
	TTLMs             int64       `json:"ttl_ms"`
	WindowSeconds     float64     `json:"window_seconds"`
	SampleEvery       int64       `json:"sample_every"`
	AccessesPerSecond float64     `json:"accesses_per_second"`
	Keys              wireEntries `json:"keys"`
}

// wireEntries decodes entry by entry and stops beyond MaxKeys: a megabyte of
// "{}," would otherwise become a hundred megabytes of entries.
type wireEntries []wireEntry

// UnmarshalJSON implements json.Unmarshaler.
func (es *wireEntries) UnmarshalJSON(b []byte) error {
	*es = nil
	if string(b) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if open, err := d.Token(); err != nil || open != json.Delim('[') {
		return ErrMalformed
	}
	for d.More() {
		if len(*es) == MaxKeys {
			return ErrTooLarge
		}
		var e wireEntry
		if err := d.Decode(&e); err != nil {
			return ErrMalformed
		}
		*es = append(*es, e)
	}
	return nil
}

type wireEntry struct {
	Key               *string `json:"key"`
	KeyBase64         string  `json:"key_base64,omitempty"`
	Port              int64   `json:"port"`
	State             string  `json:"state"`
	Share             float64 `json:"share"`
	ShareLow          float64 `json:"share_low"`
	AccessesPerSecond float64 `json:"accesses_per_second"`
	WriteRatio        float64 `json:"write_ratio"`
	Clients           int64   `json:"clients"`
	Since             int64   `json:"since"`
	Action            string  `json:"action"`
	Reason            string  `json:"reason"`
	TTLMs             int64   `json:"ttl_ms"`
	Copies            int64   `json:"copies"`
}

// Encode returns the list as JSON. It fails with ErrTooLarge beyond the bounds
// and with ErrMalformed when node, epoch, seq, at or ttl are missing; other
// numbers out of range are clamped, as Decode does.
func Encode(l *List) ([]byte, error) {
	if len(l.Entries) > MaxKeys {
		return nil, fmt.Errorf("%w: %d keys", ErrTooLarge, len(l.Entries))
	}
	w := wireList{
		Schema: Schema, Node: l.Node, Epoch: l.EpochMs, Seq: int64(l.Seq), At: l.AtMs, TTLMs: l.TTLMs,
		WindowSeconds:     clamp(l.WindowSeconds, 0, maxRate),
		SampleEvery:       max(l.SampleEvery, 1),
		AccessesPerSecond: clamp(l.AccessesPerSecond, 0, maxRate),
		Keys:              make(wireEntries, len(l.Entries)),
	}
	if err := checkHeader(&w); err != nil {
		return nil, err
	}
	for i := range l.Entries {
		if len(l.Entries[i].Key) > MaxKeyBytes {
			return nil, fmt.Errorf("%w: key of %d bytes", ErrTooLarge, len(l.Entries[i].Key))
		}
		l.Entries[i].toWire(&w.Keys[i])
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // nobody puts this into a page unescaped, and keys with & stay readable
	if err := enc.Encode(&w); err != nil {
		return nil, fmt.Errorf("encode hot list: %w", err)
	}
	b := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if len(b) > MaxListBytes {
		return nil, fmt.Errorf("%w: %d bytes", ErrTooLarge, len(b))
	}
	return b, nil
}

// Decode reads one message of the channel or one retained list. The result
// shares no memory with b. The error wraps one of ErrSchema, ErrVersion,
// ErrTooLarge and ErrMalformed and never holds text of the message, which may
// come from anybody.
func Decode(b []byte) (*List, error) {
	if len(b) > MaxListBytes {
		return nil, ErrTooLarge
	}
	if err := checkSchema(b); err != nil {
		return nil, err
	}
	var w wireList
	if err := json.Unmarshal(b, &w); err != nil {
		if errors.Is(err, ErrTooLarge) {
			return nil, ErrTooLarge
		}
		return nil, ErrMalformed
	}
	if err := checkHeader(&w); err != nil {
		return nil, err
	}
	l := &List{
		Node: w.Node, EpochMs: w.Epoch, Seq: uint64(w.Seq), AtMs: w.At, TTLMs: min(w.TTLMs, MaxTTLMs),
		WindowSeconds:     clamp(w.WindowSeconds, 0, maxRate),
		SampleEvery:       max(w.SampleEvery, 1),
		AccessesPerSecond: clamp(w.AccessesPerSecond, 0, maxRate),
	}
	if len(w.Keys) == 0 {
		return l, nil
	}
	l.Entries = make([]Entry, 0, len(w.Keys))
	type id struct {
		key  string
		port uint16
	}
	seen := make(map[id]struct{}, len(w.Keys))
	for i := range w.Keys {
		var e Entry
		if err := e.fromWire(&w.Keys[i]); err != nil {
			return nil, err
		}
		k := id{e.Key, e.Port}
		if _, dup := seen[k]; dup {
			continue // the first one counts, as for every reader that stops at it
		}
		seen[k] = struct{}{}
		l.Entries = append(l.Entries, e)
	}
	return l, nil
}

// checkSchema looks at the schema alone, so that a message of a later version
// is told apart from a broken one whatever its other fields look like.
func checkSchema(b []byte) error {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return ErrMalformed
	}
	switch {
	case head.Schema == Schema:
		return nil
	case strings.HasPrefix(head.Schema, "hotsniff.list/"):
		return ErrVersion
	}
	return ErrSchema
}

func checkHeader(w *wireList) error {
	switch {
	case !ValidNode(w.Node):
		return fmt.Errorf("%w: bad node name", ErrMalformed)
	case w.Epoch <= 0 || w.Epoch > maxTime, w.At <= 0 || w.At > maxTime:
		return fmt.Errorf("%w: bad epoch or at", ErrMalformed)
	case w.Seq <= 0 || w.Seq > maxSequence:
		return fmt.Errorf("%w: bad seq", ErrMalformed)
	case w.TTLMs <= 0:
		return fmt.Errorf("%w: bad ttl_ms", ErrMalformed)
	}
	return nil
}

// ValidNode reports whether name can be a node: 1 to MaxNodeBytes bytes of
// valid UTF-8 without control characters or spaces, because it becomes part of
// a key, a label and a log line.
func ValidNode(name string) bool {
	if name == "" || len(name) > MaxNodeBytes || !utf8.ValidString(name) {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f && r < 0xa0 })
}

func (e *Entry) toWire(w *wireEntry) {
	text, b64 := EncodeKey(e.Key)
	*w = wireEntry{
		Key: &text, KeyBase64: b64, Port: int64(e.Port), State: e.State.String(),
		Share:             clamp(e.Share, 0, 1),
		ShareLow:          clamp(e.ShareLow, 0, clamp(e.Share, 0, 1)),
		AccessesPerSecond: clamp(e.AccessesPerSecond, 0, maxRate),
		WriteRatio:        clamp(e.WriteRatio, 0, 1),
		Clients:           clamp(e.Clients, 0, maxSequence),
		Since:             clamp(e.SinceMs, 0, maxTime),
		Action:            e.Action.String(), Reason: e.Reason.String(),
		TTLMs: clamp(e.TTLMs, 0, MaxTTLMs), Copies: clamp(int64(e.Copies), 0, MaxCopies),
	}
}

func (e *Entry) fromWire(w *wireEntry) error {
	if w.Key == nil {
		return fmt.Errorf("%w: entry without key", ErrMalformed)
	}
	key, ok := DecodeKey(*w.Key, w.KeyBase64)
	if !ok {
		return fmt.Errorf("%w: bad key", ErrMalformed)
	}
	state, _ := enumIndex(stateNames[:], w.State)
	action, _ := enumIndex(actionNames[:], w.Action)
	reason, _ := enumIndex(reasonNames[:], w.Reason)
	share := clamp(w.Share, 0, 1)
	*e = Entry{
		Key: key, Port: uint16(clamp(w.Port, 0, math.MaxUint16)),
		State: State(state), Action: Action(action), Reason: Reason(reason),
		Share: share, ShareLow: clamp(w.ShareLow, 0, share),
		AccessesPerSecond: clamp(w.AccessesPerSecond, 0, maxRate),
		WriteRatio:        clamp(w.WriteRatio, 0, 1),
		Clients:           clamp(w.Clients, 0, maxSequence),
		SinceMs:           clamp(w.Since, 0, maxTime),
		TTLMs:             clamp(w.TTLMs, 0, MaxTTLMs),
		Copies:            int(clamp(w.Copies, 0, MaxCopies)),
	}
	return nil
}

// EncodeKey returns the fields key and key_base64 for a key of any bytes: the
// key itself and nothing when it is valid UTF-8, else a form for people, with
// \xNN for each byte that is not, and the exact bytes in standard base64.
func EncodeKey(key string) (text, b64 string) {
	if utf8.ValidString(key) {
		return key, ""
	}
	var sb strings.Builder
	for i := 0; i < len(key); {
		r, n := utf8.DecodeRuneInString(key[i:])
		if r == utf8.RuneError && n == 1 {
			const hex = "0123456789abcdef"
			sb.WriteString(`\x`)
			sb.WriteByte(hex[key[i]>>4])
			sb.WriteByte(hex[key[i]&15])
		} else {
			sb.WriteString(key[i : i+n])
		}
		i += n
	}
	return sb.String(), base64.StdEncoding.EncodeToString([]byte(key))
}

// DecodeKey is the inverse of EncodeKey: key_base64 decides when it is there.
// It reports false for bad base64 and for keys longer than MaxKeyBytes.
func DecodeKey(text, b64 string) (string, bool) {
	if b64 == "" {
		return text, len(text) <= MaxKeyBytes
	}
	if len(b64) > base64.StdEncoding.EncodedLen(MaxKeyBytes) {
		return "", false
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(b64)
	if err != nil || len(raw) > MaxKeyBytes {
		return "", false
	}
	return string(raw), true
}

// clamp brings v into [lo, hi]; NaN becomes lo.
func clamp[T int64 | float64](v, lo, hi T) T {
	if !(v >= lo) {
		return lo
	}
	return min(v, hi)
}
