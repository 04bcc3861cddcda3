package actions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsniff/hotsniff/hotlist"
)

// ManualSchema is the schema of the values in the hash hotlist.ManualKey and
// of the note on the channel that says the hash changed.
const ManualSchema = "hotsniff.manual/v1"

const (
	// MaxManual bounds the pins and bans that are looked at: half of what a
	// list can hold, so that pins never push out everything that is measured.
	MaxManual = hotlist.MaxKeys / 2
	// DefaultManualTTL: a pin that somebody forgot ends after a day.
	DefaultManualTTL = 24 * time.Hour
	// MaxManualTTL is a year, for those who insist.
	MaxManualTTL = 366 * 24 * time.Hour

	// manualPoll finds changes whose note was lost.
	manualPoll = 30 * time.Second
	// manualGap bounds how often a flood of notes makes us read the hash.
	manualGap = 250 * time.Millisecond
	// maxManualValue is far above what a value of ours takes.
	maxManualValue = 4096
	// forgotten is how long an entry that expired stays before a later
	// Pin, Unpin or Ban clears it away.
	forgotten = time.Hour
)

// ManualOp is what a manual entry does to its key.
type ManualOp uint8

// The operations.
const (
	OpPin ManualOp = iota + 1 // always on the list
	OpBan                     // never on the list
)

// String returns the name on the wire.
func (o ManualOp) String() string {
	switch o {
	case OpPin:
		return "pin"
	case OpBan:
		return "ban"
	}
	return ""
}

// ManualEntry is a key that somebody pinned or banned.
type ManualEntry struct {
	Key     string
	Op      ManualOp
	FromMs  int64 // unix ms at which it begins to hold; 0: at once
	UntilMs int64 // unix ms at which it ends; 0: never (configuration only)
	Rule    Rule  // wishes for a pinned key
}

func (e *ManualEntry) holds(nowMs int64) bool {
	return nowMs >= e.FromMs && (e.UntilMs == 0 || nowMs < e.UntilMs)
}

type wireManual struct {
	Schema string  `json:"schema"`
	Op     string  `json:"op"`
	From   int64   `json:"from,omitempty"`
	Until  int64   `json:"until"`
	Action *string `json:"action,omitempty"`
	TTLMs  int64   `json:"ttl_ms,omitempty"`
	Copies int     `json:"copies,omitempty"`
}

func (e *ManualEntry) encode() ([]byte, error) {
	w := wireManual{Schema: ManualSchema, Op: e.Op.String(), From: e.FromMs, Until: e.UntilMs, TTLMs: e.Rule.TTLMs, Copies: e.Rule.Copies}
	if e.Rule.ActionSet {
		name := e.Rule.Action.String()
		w.Action = &name
	}
	return json.Marshal(&w)
}

// decodeManual reads one field of the hash; false when it is not one of ours.
func decodeManual(key, value string) (ManualEntry, bool) {
	var w wireManual
	if len(key) > hotlist.MaxKeyBytes || len(value) > maxManualValue || json.Unmarshal([]byte(value), &w) != nil || w.Schema != ManualSchema {
		return ManualEntry{}, false
	}
	e := ManualEntry{Key: key, FromMs: max(w.From, 0), UntilMs: w.Until}
	switch w.Op {
	case OpPin.String():
		e.Op = OpPin
	case OpBan.String():
		e.Op = OpBan
	default:
		return ManualEntry{}, false
	}
	if w.Until <= 0 {
		return ManualEntry{}, false // everything in the hash ends some day
	}
	if w.Action != nil {
		e.Rule.Action, e.Rule.ActionSet = hotlist.ParseAction(*w.Action)
	}
	e.Rule.TTLMs = max(w.TTLMs, 0)
	e.Rule.Copies = max(w.Copies, 0)
	return e, true
}

// ManualSet is an immutable set of manual entries, sorted by key.
type ManualSet struct {
	entries []ManualEntry
}

// Entries returns all entries, also those that do not hold now. The slice must
// not be changed.
func (s *ManualSet) Entries() []ManualEntry { return s.entries }

// find returns the entry of a key if it holds.
func (s *ManualSet) find(key string, nowMs int64) (*ManualEntry, bool) {
	i, ok := slices.BinarySearchFunc(s.entries, key, func(e ManualEntry, k string) int { return cmp.Compare(e.Key, k) })
	if !ok || !s.entries[i].holds(nowMs) {
		return nil, false
	}
	return &s.entries[i], true
}

// next returns when the next entry begins or ends after nowMs, 0 for never.
func (s *ManualSet) next(nowMs int64) int64 {
	var at int64
	for i := range s.entries {
		for _, t := range [...]int64{s.entries[i].FromMs, s.entries[i].UntilMs} {
			if t > nowMs && (at == 0 || t < at) {
				at = t
			}
		}
	}
	return at
}

// merge returns l without the banned keys and with the pinned ones. The result
// is l itself when nothing changes; l is never changed.
func (s *ManualSet) merge(l *hotlist.List, nowMs int64) *hotlist.List {
	if len(s.entries) == 0 {
		return l
	}
	measured := make(map[string]struct{}, len(l.Entries))
	for i := range l.Entries {
		measured[l.Entries[i].Key] = struct{}{}
	}
	out := *l
	out.Entries = make([]hotlist.Entry, 0, len(l.Entries)+len(s.entries))
	for i := range s.entries { // pins first: what is too much is cut at the end
		m := &s.entries[i]
		if _, has := measured[m.Key]; has || m.Op != OpPin || !m.holds(nowMs) {
			continue
		}
		e := hotlist.Entry{Key: m.Key, SinceMs: m.FromMs}
		pin(&e, m)
		out.Entries = append(out.Entries, e)
	}
	for _, e := range l.Entries {
		if m, ok := s.find(e.Key, nowMs); ok {
			if m.Op == OpBan {
				continue
			}
			pin(&e, m)
		}
		out.Entries = append(out.Entries, e)
	}
	out.Entries = out.Entries[:min(len(out.Entries), hotlist.MaxKeys)]
	return &out
}

// pin marks an entry as pinned and fulfils the wishes; a measured entry keeps
// its figures.
func pin(e *hotlist.Entry, m *ManualEntry) {
	adv := Advise(AdviceConfig{}, Figures{
		Share: e.Share, AccessesPerSecond: e.AccessesPerSecond, WriteRatio: e.WriteRatio, Pinned: true, Rule: m.Rule,
	})
	e.State, e.Action, e.Reason, e.TTLMs, e.Copies = hotlist.StatePinned, adv.Action, adv.Reason, adv.TTLMs, adv.Copies
}

// ManualStats is a copy of the counters of Manual.
type ManualStats struct {
	Entries int    // known now, including the configured ones
	Ignored uint64 // fields of the hash that were not ours or too many
	Reads   [NumResults]uint64
}

// Manual keeps the pins and bans up to date: it listens for notes on the
// channel, reads the hash when one comes, after each reconnection and every
// half minute.
type Manual struct {
	client  *Client
	cfg     Config
	changed chan struct{} // one slot: the set is another one now
	note    chan struct{} // one slot: read the hash

	set        atomic.Pointer[ManualSet] // configured and hash, merged
	configured atomic.Pointer[[]ManualEntry]
	counters   atomic.Pointer[ManualStats]
	hash       []ManualEntry // run's goroutine only
	trouble    trouble
}

func newManual(c *Client, cfg Config) *Manual {
	m := &Manual{
		client: c, cfg: cfg, changed: make(chan struct{}, 1), note: make(chan struct{}, 1),
		trouble: trouble{log: cfg.Log, redact: c.redact, what: "read manual entries"},
	}
	m.configured.Store(&cfg.Configured)
	m.counters.Store(&ManualStats{})
	m.rebuild()
	return m
}

// Load returns the entries of now. Safe for any goroutine.
func (m *Manual) Load() *ManualSet { return m.load() }

func (m *Manual) load() *ManualSet { return m.set.Load() }

func (m *Manual) stats() ManualStats {
	s := *m.counters.Load()
	s.Entries = len(m.load().entries)
	return s
}

// Configure replaces the pins and bans of the configuration, for a reload.
// Safe for any goroutine; takes effect while Run is running.
func (m *Manual) Configure(entries []ManualEntry) {
	entries = slices.Clone(entries)
	m.configured.Store(&entries)
	poke(m.note)
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// rebuild merges the hash over the configuration: what somebody typed just now
// beats what a file said.
func (m *Manual) rebuild() {
	byKey := make(map[string]ManualEntry)
	for _, list := range [...][]ManualEntry{*m.configured.Load(), m.hash} {
		for _, e := range list {
			byKey[e.Key] = e
		}
	}
	all := make([]ManualEntry, 0, len(byKey))
	for _, e := range byKey {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b ManualEntry) int { return cmp.Compare(a.Key, b.Key) })
	if old := m.set.Load(); old != nil && slices.Equal(old.entries, all) {
		return
	}
	m.set.Store(&ManualSet{entries: all})
	poke(m.changed)
}

// run keeps the set up to date until ctx ends.
func (m *Manual) run(ctx context.Context) {
	if !m.cfg.Manual { // only the configuration can change
		for {
			select {
			case <-ctx.Done():
				return
			case <-m.note:
				m.rebuild()
			}
		}
	}
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		hotlist.Listen(ctx, m.client, hotlist.ListenConfig{
			Channel: m.cfg.Channel, Sharded: m.cfg.Sharded,
			OnUp:      func(context.Context) { poke(m.note) },
			OnMessage: m.message,
		})
	}()
	defer func() { <-listening }()
	poll := time.NewTicker(manualPoll)
	defer poll.Stop()
	for {
		m.read(ctx)
		select { // a flood of notes is one note
		case <-ctx.Done():
			return
		case <-time.After(manualGap):
		}
		select {
		case <-ctx.Done():
			return
		case <-m.note:
		case <-poll.C:
		}
	}
}

// message looks at what comes on the channel: our own lists, those of other
// nodes, and the notes that are meant for us.
func (m *Manual) message(payload string) {
	if len(payload) > maxManualValue {
		return // a list
	}
	var head struct {
		Schema string `json:"schema"`
	}
	if json.Unmarshal([]byte(payload), &head) == nil && head.Schema == ManualSchema {
		poke(m.note)
	}
}

func (m *Manual) read(ctx context.Context) {
	entries, ignored, err := readManual(ctx, m.client)
	if ctx.Err() != nil {
		return
	}
	s := *m.counters.Load()
	res := classify(err)
	s.Reads[res]++
	if err != nil {
		m.trouble.begin(res, err)
		m.counters.Store(&s)
		m.rebuild() // the configuration may have changed
		return      // the entries that we know hold until they expire
	}
	m.trouble.over()
	s.Ignored += uint64(ignored)
	m.counters.Store(&s)
	m.hash = entries
	m.rebuild()
}

// readManual reads the hash. When it holds more than MaxManual, those that end
// last are kept, so that everybody keeps the same ones.
func readManual(ctx context.Context, c redis.UniversalClient) (entries []ManualEntry, ignored int, err error) {
	fields, err := c.HGetAll(ctx, hotlist.ManualKey).Result()
	if err != nil {
		return nil, 0, err
	}
	for k, v := range fields {
		if e, ok := decodeManual(k, v); ok {
			entries = append(entries, e)
		} else {
			ignored++
		}
	}
	slices.SortFunc(entries, func(a, b ManualEntry) int {
		return cmp.Or(cmp.Compare(b.UntilMs, a.UntilMs), cmp.Compare(a.Key, b.Key))
	})
	if over := len(entries) - MaxManual; over > 0 {
		entries, ignored = entries[:MaxManual], ignored+over
	}
	return entries, ignored, nil
}

// ManualTarget says where Pin, Ban and Unpin write.
type ManualTarget struct {
	Client  redis.UniversalClient
	Channel string // hotlist.DefaultChannel when empty
	Sharded bool
}

// ErrManualFull: there are MaxManual pins and bans already.
var ErrManualFull = errors.New("too many pinned and banned keys")

// Pin puts key on the list of every node for ttl (0: a day), beginning at from
// (zero: now), whatever its traffic. It returns when Redis has it; daemons and
// subscribers see it within a second.
func (t ManualTarget) Pin(ctx context.Context, key string, from time.Time, ttl time.Duration, wishes Rule) error {
	return t.put(ctx, ManualEntry{Key: key, Op: OpPin, Rule: wishes}, from, ttl)
}

// Ban keeps key off the list of every node for ttl (0: a day).
func (t ManualTarget) Ban(ctx context.Context, key string, ttl time.Duration) error {
	return t.put(ctx, ManualEntry{Key: key, Op: OpBan}, time.Time{}, ttl)
}

func (t ManualTarget) put(ctx context.Context, e ManualEntry, from time.Time, ttl time.Duration) error {
	if ttl == 0 {
		ttl = DefaultManualTTL
	}
	switch {
	case ttl < 0 || ttl > MaxManualTTL:
		return fmt.Errorf("%s: ttl must be positive and at most %v", e.Op, MaxManualTTL)
	case len(e.Key) > hotlist.MaxKeyBytes:
		return fmt.Errorf("%s: key is longer than %d bytes", e.Op, hotlist.MaxKeyBytes)
	}
	start := time.Now()
	if from.After(start) {
		start = from
		e.FromMs = from.UnixMilli()
	}
	e.UntilMs = start.Add(ttl).UnixMilli()
	if err := t.clear(ctx, e.Key); err != nil {
		return fmt.Errorf("%s: %w", e.Op, err)
	}
	value, err := e.encode()
	if err != nil {
		return fmt.Errorf("%s: %w", e.Op, err)
	}
	if err := t.Client.HSet(ctx, hotlist.ManualKey, e.Key, value).Err(); err != nil {
		return fmt.Errorf("%s: %w", e.Op, err)
	}
	return t.tell(ctx)
}

// clear makes room: it removes entries that expired long ago.
func (t ManualTarget) clear(ctx context.Context, key string) error {
	entries, _, err := readManual(ctx, t.Client)
	if err != nil {
		return err
	}
	limit := time.Now().Add(-forgotten).UnixMilli()
	var old []string
	known := false
	for _, e := range entries {
		if e.UntilMs < limit {
			old = append(old, e.Key)
		}
		known = known || e.Key == key
	}
	if len(old) > 0 {
		if err := t.Client.HDel(ctx, hotlist.ManualKey, old...).Err(); err != nil {
			return err
		}
	}
	if !known && len(entries)-len(old) >= MaxManual {
		return ErrManualFull
	}
	return nil
}

// Unpin removes the pin or ban of key and reports whether there was one.
func (t ManualTarget) Unpin(ctx context.Context, key string) (bool, error) {
	n, err := t.Client.HDel(ctx, hotlist.ManualKey, key).Result()
	if err != nil {
		return false, fmt.Errorf("unpin: %w", err)
	}
	return n > 0, t.tell(ctx)
}

// Entries returns what is pinned and banned now, sorted by key.
func (t ManualTarget) Entries(ctx context.Context) ([]ManualEntry, error) {
	entries, _, err := readManual(ctx, t.Client)
	if err != nil {
		return nil, fmt.Errorf("read manual entries: %w", err)
	}
	now := time.Now().UnixMilli()
	entries = slices.DeleteFunc(entries, func(e ManualEntry) bool { return e.UntilMs <= now })
	slices.SortFunc(entries, func(a, b ManualEntry) int { return cmp.Compare(a.Key, b.Key) })
	return entries, nil
}

// tell publishes the note that makes every daemon read the hash. Without it
// they find the change within half a minute.
func (t ManualTarget) tell(ctx context.Context) error {
	channel := t.Channel
	if channel == "" {
		channel = hotlist.DefaultChannel
	}
	note, err := json.Marshal(map[string]any{"schema": ManualSchema, "at": time.Now().UnixMilli()})
	if err != nil {
		return err
	}
	if t.Sharded {
		err = t.Client.SPublish(ctx, channel, note).Err()
	} else {
		err = t.Client.Publish(ctx, channel, note).Err()
	}
	if err != nil {
		return fmt.Errorf("stored, but not announced (daemons find it within %v): %w", manualPoll, err)
	}
	return nil
}
