package hotlist

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/redis/go-redis/v9"
)

// HookConfig configures a Hook. Zero fields mean the defaults of CacheConfig.
type HookConfig struct {
	MaxEntries int
	MaxBytes   int
	// TTL is the life of a copy. 0: what the list advises for each key.
	TTL time.Duration
	// Tell, if set, announces written hot keys to the other instances, on
	// the channel that the watcher follows. It may be the hooked client.
	Tell redis.UniversalClient
	// Track, if set, lets the server say when anybody writes a listed key;
	// see Tracking. It may be the hooked client. One tracking is enough for
	// all hooks and caches of a watcher.
	Track *redis.Client
}

// Hook serves reads of hot keys from memory on an existing go-redis client,
// with no change where it is called:
//
//	hook := hotlist.NewHook(watcher, hotlist.HookConfig{Tell: rdb})
//	rdb.AddHook(hook)
//
// Served are commands that read one key and depend on nothing but it (GET,
// HGET, HGETALL, EXISTS, LRANGE and others) and MGET, key by key. A command that the
// hook does not know is never served, and drops the copies of every hot key
// that is among its arguments, as every write does: before it is sent, so that
// nobody reads what is about to change, and when it is answered, so that nobody
// keeps what was read meanwhile. So a client always sees its own writes, also
// those in pipelines, MULTI and scripts that name their keys.
//
// What others write is seen when they tell (Tell) or the server does (Track),
// else when the copy's TTL (+-15 %) is over. Without Track not seen before that:
// that a key expired, keys that a script touches without naming them, and, on a
// ClusterClient, commands inside Watch transactions; call Watcher.Drop for those.
//
// Inside WATCH and MULTI, after SELECT or AUTH and in pipelines nothing is served
// from memory. A pipeline that leaves its connection in such a state (SELECT in
// it, or WATCH without an end) ends serving for good, because nobody can tell
// which connection that was. Use one Hook for each client: it does not tell
// databases apart.
type Hook struct {
	w     *Watcher
	cfg   HookConfig
	start time.Time

	items  *otter.Cache[string, *reply]
	flight flight
	notes  *notes
	stray  atomic.Bool // some connection is in a state that nobody can tell from outside
	track  *Tracking
	remove func()

	hits, misses, drops atomic.Uint64
}

// reply is what Redis answered to one command; immutable.
type reply struct {
	key   string
	value any // as snapshot made it
	null  bool
	gen   uint64
	fresh time.Duration
	size  uint32
}

// HookStats is a copy of a Hook's counters.
type HookStats struct {
	Hits    uint64 // commands, or keys of MGET, served from memory
	Misses  uint64 // of hot keys, that went to Redis or waited for one that did
	Drops   uint64 // copies dropped because of commands of this client
	Entries int
	Bytes   uint64
}

// NewHook returns a hook for one client. Close it when the client is closed.
func NewHook(w *Watcher, cfg HookConfig) *Hook {
	if cfg.MaxEntries <= 0 {
		cfg.MaxEntries = DefaultCacheEntries
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = DefaultCacheBytes
	}
	h := &Hook{w: w, cfg: cfg, start: time.Now()}
	h.items = otter.Must(&otter.Options[string, *reply]{
		MaximumWeight: uint64(cfg.MaxBytes),
		Weigher:       func(_ string, r *reply) uint32 { return r.size },
	})
	if cfg.Tell != nil {
		h.notes = newNotes(w, cfg.Tell)
	}
	if cfg.Track != nil {
		h.track = NewTracking(w, cfg.Track, TrackingConfig{})
	}
	h.remove = w.listen(&listener{change: func(_, left []*Hot) { h.letGo(left) }})
	return h
}

// Close sends the notes that wait and ends the hook's goroutines. The hook then
// still serves and drops, but tells nobody.
func (h *Hook) Close() {
	h.remove()
	if h.notes != nil {
		h.notes.close()
	}
	if h.track != nil {
		h.track.Close()
	}
	h.items.StopAllGoroutines()
}

// letGo frees the copies of keys that left the list, which nobody reads any
// more. One key has several copies, one for each command and its arguments.
func (h *Hook) letGo(left []*Hot) {
	if len(left) == 0 {
		return
	}
	gone := make(map[string]bool, len(left))
	for _, hot := range left {
		gone[hot.Key] = true
	}
	for sig, r := range h.items.All() {
		if gone[r.key] {
			h.items.Invalidate(sig)
		}
	}
}

// Stats returns the counters.
func (h *Hook) Stats() HookStats {
	return HookStats{
		Hits: h.hits.Load(), Misses: h.misses.Load(), Drops: h.drops.Load(),
		Entries: h.items.EstimatedSize(), Bytes: h.items.WeightedSize(),
	}
}

// DialHook implements redis.Hook.
func (h *Hook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook. go-redis calls it once for each client and
// again for each connection that it hands out for Watch or Conn, which is how
// the state of such a connection is told apart.
func (h *Hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	var pinned atomic.Bool // MULTI, WATCH or SELECT was seen: not the usual state
	return func(ctx context.Context, cmd redis.Cmder) error {
		name := cmd.Name()
		switch commandKinds[name] {
		case kindRead:
			if key, ok := argText(cmd.Args(), 1); ok && !h.stray.Load() && !pinned.Load() && (name != "exists" || len(cmd.Args()) == 2) {
				if hot, ok := h.w.Lookup(key); ok && hot.Cacheable() {
					return h.read(ctx, cmd, hot, next)
				}
			}
			return next(ctx, cmd)
		case kindMultiRead:
			if c, ok := cmd.(*redis.SliceCmd); ok && !h.stray.Load() && !pinned.Load() {
				return h.mget(ctx, c, next)
			}
			return next(ctx, cmd)
		case kindNeutral:
			return next(ctx, cmd)
		case kindState:
			pinned.Store(true)
			err := next(ctx, cmd)
			if name == "exec" { // what was queued one by one happened only now
				h.tell(h.dropAll())
			}
			return err
		}
		h.drop(cmd)
		err := next(ctx, cmd)
		h.tell(h.drop(cmd))
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (h *Hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		dropAll := func() (keys []string) {
			for _, cmd := range cmds {
				if commandKinds[cmd.Name()] == kindOther {
					keys = append(keys, h.drop(cmd)...)
				}
			}
			return keys
		}
		dropAll()
		if strays(cmds) {
			h.stray.Store(true)
		}
		err := next(ctx, cmds)
		h.tell(dropAll())
		if loneExec(cmds) {
			h.tell(h.dropAll())
		}
		return err
	}
}

// strays reports whether a pipeline leaves its connection in another database,
// as another user, or inside WATCH or MULTI.
func strays(cmds []redis.Cmder) bool {
	inside := false
	for _, cmd := range cmds {
		switch cmd.Name() {
		case "select", "auth", "hello", "reset":
			return true
		case "watch", "multi":
			inside = true
		case "exec", "discard", "unwatch":
			inside = false
		}
	}
	return inside
}

// loneExec reports whether a pipeline carries out what was queued before it.
func loneExec(cmds []redis.Cmder) bool {
	for _, cmd := range cmds {
		switch cmd.Name() {
		case "multi":
			return false
		case "exec":
			return true
		}
	}
	return false
}

// everything stands among dropped keys for all of them.
const everything = "\x00all"

// drop invalidates the copies of all hot keys among the arguments.
func (h *Hook) drop(cmd redis.Cmder) (keys []string) {
	switch cmd.Name() {
	case "flushall", "flushdb", "swapdb", "replicaof", "slaveof":
		return h.dropAll()
	}
	args := cmd.Args()
	for i := 1; i < len(args); i++ {
		key, ok := argText(args, i)
		if !ok {
			continue
		}
		if hot, ok := h.w.Lookup(key); ok {
			hot.gen.Add(1)
			h.drops.Add(1)
			keys = append(keys, key)
		}
	}
	return keys
}

func (h *Hook) dropAll() (keys []string) {
	h.w.DropAll()
	h.drops.Add(1)
	return []string{everything}
}

func (h *Hook) tell(keys []string) {
	if h.notes != nil && len(keys) > 0 {
		h.notes.add(keys)
	}
}

// read serves cmd from memory, or runs it and keeps the answer. Of many callers
// at once only one goes to Redis.
func (h *Hook) read(ctx context.Context, cmd redis.Cmder, hot *Hot, next redis.ProcessHook) error {
	sig, ok := signature(cmd)
	if !ok {
		return next(ctx, cmd)
	}
	gen := hot.gen.Load()
	if r, ok := h.get(sig, gen); ok && restore(cmd, r) {
		h.hits.Add(1)
		return r.err()
	}
	h.misses.Add(1)
	c, led := h.flight.join(sig + strconv.FormatUint(gen, 36))
	if led {
		defer h.flight.leave(c)
		err := next(ctx, cmd)
		c.r = h.keep(sig, cmd, err, hot, gen)
		return err
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.r != nil && restore(cmd, c.r) {
		return c.r.err()
	}
	return next(ctx, cmd) // the one we waited for failed, perhaps because its caller left
}

func (h *Hook) get(sig string, gen uint64) (*reply, bool) {
	r, ok := h.items.GetIfPresent(sig)
	if !ok || r.gen != gen || time.Since(h.start) >= r.fresh {
		return nil, false
	}
	return r, true
}

// keep stores the answer to cmd and returns it, nil if it cannot be kept.
func (h *Hook) keep(sig string, cmd redis.Cmder, err error, hot *Hot, gen uint64) *reply {
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil
	}
	v, size, ok := snapshot(cmd)
	if !ok {
		return nil
	}
	r := &reply{value: v, null: err != nil, gen: gen}
	h.store(sig, r, hot, size)
	return r
}

func (h *Hook) store(sig string, r *reply, hot *Hot, size int) {
	ttl := h.cfg.TTL
	if ttl <= 0 {
		ttl = hot.TTL
	}
	if ttl <= 0 {
		ttl = DefaultCacheTTL
	}
	ttl = time.Duration(float64(ttl) * (1 - ttlJitter + 2*ttlJitter*rand.Float64()))
	r.fresh = time.Since(h.start) + ttl
	// As for Cache: an equal part at least, so that bytes bound entries.
	r.size = uint32(min(max(size+len(sig), h.cfg.MaxBytes/h.cfg.MaxEntries, 1), 1<<31))
	if r.gen != hot.gen.Load() {
		return
	}
	r.key = hot.Key
	h.items.Set(sig, r)
	// As for Cache: a key that left meanwhile must not come back.
	if now, ok := h.w.Lookup(hot.Key); !ok || now.gen != hot.gen {
		h.items.Invalidate(sig)
	}
}

// mget serves each hot key of an MGET from memory and asks for the others.
func (h *Hook) mget(ctx context.Context, cmd *redis.SliceCmd, next redis.ProcessHook) error {
	args := cmd.Args()
	n := len(args) - 1
	hots := make([]*Hot, n)
	gens := make([]uint64, n)
	values := make([]any, n)
	served, any_ := make([]bool, n), false
	rest := []any{args[0]}
	for i := range n {
		key, ok := argText(args, i+1)
		if !ok {
			return next(ctx, cmd)
		}
		if hot, ok := h.w.Lookup(key); ok && hot.Cacheable() {
			any_ = true
			hots[i], gens[i] = hot, hot.gen.Load()
			if r, ok := h.get(mgetSignature(key), gens[i]); ok {
				values[i], served[i] = r.value, true
				h.hits.Add(1)
				continue
			}
			h.misses.Add(1)
		}
		rest = append(rest, args[i+1])
	}
	if !any_ {
		return next(ctx, cmd)
	}
	if len(rest) > 1 {
		sub := redis.NewSliceCmd(ctx, rest...)
		if len(rest) == len(args) {
			sub = cmd // nothing was served: send what the caller made
		}
		if err := next(ctx, sub); err != nil {
			return err
		}
		got := sub.Val()
		if len(got) != len(rest)-1 {
			return errors.New("hotlist: reply to MGET has the wrong length")
		}
		for i, j := 0, 0; i < n; i++ {
			if served[i] {
				continue
			}
			values[i] = got[j]
			j++
			if hots[i] != nil {
				key, _ := argText(args, i+1)
				h.store(mgetSignature(key), &reply{value: values[i], gen: gens[i]}, hots[i], valueSize(values[i]))
			}
		}
	}
	cmd.SetVal(values)
	return nil
}

func (r *reply) err() error {
	if r.null {
		return redis.Nil
	}
	return nil
}
