package hotlist

import (
	"encoding"
	"maps"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// kind says what a Hook does with a command.
type kind uint8

const (
	kindOther     kind = iota // writes, and whatever is not in the table: drops copies
	kindRead                  // reads the key that is its first argument, and nothing else
	kindMultiRead             // MGET
	kindNeutral               // changes no key; the answer is not kept
	kindState                 // changes what the connection means
)

var commandKinds = makeKinds()

func makeKinds() map[string]kind {
	m := make(map[string]kind)
	set := func(k kind, names string) {
		for _, n := range strings.Fields(names) {
			m[n] = k
		}
	}
	// Their answer depends on the value alone: no time to live, no
	// encoding, no randomness, no cursor.
	set(kindRead, `get strlen getrange substr exists type getbit bitcount bitpos
		hget hmget hgetall hexists hlen hkeys hvals hstrlen
		llen lindex lrange lpos
		scard sismember smismember smembers
		zcard zcount zlexcount zscore zmscore zrank zrevrank zrange zrevrange
		zrangebyscore zrevrangebyscore zrangebylex zrevrangebylex
		xlen xrange xrevrange geopos geohash geodist`)
	set(kindMultiRead, `mget`)
	set(kindNeutral, `ping echo time info dbsize lastsave client command config cluster readonly readwrite
		publish spublish pubsub slowlog latency memory object debug dump scan sscan hscan zscan keys randomkey
		ttl pttl expiretime pexpiretime httl hpttl hexpiretime hpexpiretime
		hrandfield srandmember zrandmember lcs sort_ro bitfield_ro eval_ro evalsha_ro fcall_ro
		sinter sintercard sunion sdiff zinter zintercard zunion zdiff
		georadius_ro georadiusbymember_ro geosearch xread xpending xinfo wait waitaof
		script function acl role asking`)
	set(kindState, `watch unwatch multi exec discard select reset hello auth`)
	return m
}

// argText returns an argument as the text that go-redis sends for it, so that
// a key is known in whatever type the caller writes it. False where there is no
// such argument or go-redis would refuse it.
func argText(args []any, i int) (string, bool) {
	if i >= len(args) {
		return "", false
	}
	switch a := args[i].(type) {
	case nil:
		return "", true
	case string:
		return a, true
	case []byte:
		return string(a), true
	case net.IP:
		return string(a), true
	case bool:
		return boolText(a), true
	case time.Duration:
		return strconv.FormatInt(a.Nanoseconds(), 10), true
	case time.Time:
		return a.Format(time.RFC3339Nano), true
	case *time.Time: // before its MarshalBinary, as go-redis does
		if a == nil {
			a = new(time.Time)
		}
		return a.Format(time.RFC3339Nano), true
	case encoding.BinaryMarshaler:
		if v := reflect.ValueOf(a); v.Kind() == reflect.Pointer && v.IsNil() {
			return "", false
		}
		b, err := a.MarshalBinary()
		return string(b), err == nil
	}
	return numberText(args[i])
}

func boolText(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// numberText is argText for numbers, and for pointers, which stand for what
// they point to.
func numberText(a any) (string, bool) {
	switch v := reflect.ValueOf(a); {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return argText([]any{v.Elem().Interface()}, 0)
	case v.Kind() == reflect.Pointer:
		return argText([]any{reflect.Zero(v.Type().Elem()).Interface()}, 0)
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10), true
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10), true
	case v.CanFloat():
		return strconv.FormatFloat(v.Float(), 'f', -1, 64), true
	}
	return "", false
}

// typeLetter names the types of answers that snapshot and restore know, and is
// 0 for all others.
func typeLetter(cmd redis.Cmder) byte {
	switch cmd.(type) {
	case *redis.StringCmd:
		return 's'
	case *redis.StatusCmd:
		return 't'
	case *redis.IntCmd:
		return 'i'
	case *redis.BoolCmd:
		return 'b'
	case *redis.FloatCmd:
		return 'f'
	case *redis.StringSliceCmd:
		return 'S'
	case *redis.IntSliceCmd:
		return 'I'
	case *redis.BoolSliceCmd:
		return 'B'
	case *redis.FloatSliceCmd:
		return 'F'
	case *redis.MapStringStringCmd:
		return 'M'
	case *redis.SliceCmd:
		return 'A'
	case *redis.Cmd:
		return 'c'
	}
	return 0
}

// signature names a command with its arguments and the type that its answer is
// read into, without ambiguity. False for arguments and answers of types that
// are not known.
func signature(cmd redis.Cmder) (string, bool) {
	kind := typeLetter(cmd)
	if kind == 0 {
		return "", false
	}
	var b strings.Builder
	b.Grow(64)
	b.WriteByte(kind)
	for _, a := range cmd.Args() {
		var s string
		switch a := a.(type) {
		case string:
			s = a
		case []byte:
			s = string(a)
		case int:
			s = strconv.Itoa(a)
		case int64:
			s = strconv.FormatInt(a, 10)
		default:
			return "", false
		}
		b.WriteByte(' ')
		b.WriteString(strconv.Itoa(len(s)))
		b.WriteByte(':')
		b.WriteString(s)
	}
	return b.String(), true
}

// mgetSignature is apart from GET's: MGET answers null where GET answers with an
// error.
func mgetSignature(key string) string { return "mget " + key }

// snapshot copies the answer out of cmd. False for types that are not known,
// or that hold what could be changed through the copy.
func snapshot(cmd redis.Cmder) (v any, size int, ok bool) {
	switch c := cmd.(type) {
	case *redis.StringCmd:
		return strings.Clone(c.Val()), len(c.Val()), true // Bytes lets the caller write into the answer
	case *redis.StatusCmd:
		return c.Val(), len(c.Val()), true
	case *redis.IntCmd:
		return c.Val(), 8, true
	case *redis.BoolCmd:
		return c.Val(), 1, true
	case *redis.FloatCmd:
		return c.Val(), 8, true
	case *redis.StringSliceCmd:
		return slices.Clone(c.Val()), sliceSize(c.Val()), true
	case *redis.IntSliceCmd:
		return slices.Clone(c.Val()), 8 * len(c.Val()), true
	case *redis.BoolSliceCmd:
		return slices.Clone(c.Val()), len(c.Val()), true
	case *redis.FloatSliceCmd:
		return slices.Clone(c.Val()), 8 * len(c.Val()), true
	case *redis.MapStringStringCmd:
		size := 0
		for k, v := range c.Val() {
			size += len(k) + len(v) + 32
		}
		return maps.Clone(c.Val()), size, true
	case *redis.SliceCmd:
		size := 0
		for _, v := range c.Val() {
			if !plain(v) {
				return nil, 0, false
			}
			size += valueSize(v)
		}
		return slices.Clone(c.Val()), size, true
	case *redis.Cmd:
		return c.Val(), valueSize(c.Val()), plain(c.Val())
	}
	return nil, 0, false
}

// restore puts a kept answer into cmd, as a copy that the caller may change.
// False when cmd reads another type.
func restore(cmd redis.Cmder, r *reply) bool {
	switch c := cmd.(type) {
	case *redis.StringCmd:
		return put(r, func(v string) { c.SetVal(strings.Clone(v)) }) // as in snapshot
	case *redis.StatusCmd:
		return put(r, c.SetVal)
	case *redis.IntCmd:
		return put(r, c.SetVal)
	case *redis.BoolCmd:
		return put(r, c.SetVal)
	case *redis.FloatCmd:
		return put(r, c.SetVal)
	case *redis.StringSliceCmd:
		return put(r, func(v []string) { c.SetVal(slices.Clone(v)) })
	case *redis.IntSliceCmd:
		return put(r, func(v []int64) { c.SetVal(slices.Clone(v)) })
	case *redis.BoolSliceCmd:
		return put(r, func(v []bool) { c.SetVal(slices.Clone(v)) })
	case *redis.FloatSliceCmd:
		return put(r, func(v []float64) { c.SetVal(slices.Clone(v)) })
	case *redis.MapStringStringCmd:
		return put(r, func(v map[string]string) { c.SetVal(maps.Clone(v)) })
	case *redis.SliceCmd:
		return put(r, func(v []any) { c.SetVal(slices.Clone(v)) })
	case *redis.Cmd:
		c.SetVal(r.value)
		return true
	}
	return false
}

func put[T any](r *reply, set func(T)) bool {
	v, ok := r.value.(T)
	if ok {
		set(v)
	}
	return ok
}

// plain reports whether a value cannot be changed by who holds it.
func plain(v any) bool {
	switch v.(type) {
	case nil, string, int64, float64, bool:
		return true
	}
	return false
}

func valueSize(v any) int {
	if s, ok := v.(string); ok {
		return 16 + len(s)
	}
	return 16
}

func sliceSize(s []string) int {
	n := 0
	for _, v := range s {
		n += 16 + len(v)
	}
	return n
}
