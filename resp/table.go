package resp

import (
	"encoding/binary"
	"math/bits"
	"strings"
)

// CommandID names a command within one Decoder: the number of a row of its
// table, counted from 1. Ids of the built-in rows do not change at run time.
type CommandID uint16

// CommandUnknown is the id of every command that is not in the table.
const CommandUnknown CommandID = 0

// noArg is an argument index that no request has: counts end at 2^31-1.
const noArg = 1<<31 - 1

// effect is what a command does to the decoding of its connection.
type effect uint8

const (
	effectNone        effect = iota
	effectQuit               // the server answers and closes
	effectReplication        // PSYNC, SYNC: the reply is a stream
	effectUnpaired           // the number of replies is not one
	effectHTTP               // no command: the server closes the connection
)

// effects are the commands that a decoder has to know by name.
var effects = []struct {
	name string
	does effect
}{
	{"QUIT", effectQuit},
	{"PSYNC", effectReplication},
	{"SYNC", effectReplication},
	{"SUBSCRIBE", effectUnpaired},
	{"PSUBSCRIBE", effectUnpaired},
	{"SSUBSCRIBE", effectUnpaired},
	{"UNSUBSCRIBE", effectUnpaired},
	{"PUNSUBSCRIBE", effectUnpaired},
	{"SUNSUBSCRIBE", effectUnpaired},
	{"MONITOR", effectUnpaired},
	{"CLIENT REPLY", effectUnpaired},
	{"POST", effectHTTP},
	{"HOST:", effectHTTP},
}

// httpRows are words that no command may have: the server takes them for an
// attack by way of a browser.
var httpRows = []Row{{Name: "POST", Arity: -1}, {Name: "HOST:", Arity: -1}}

// command is a row as the decoder uses it.
type command struct {
	name  string
	arity int32
	// only is the index of the key when the command has exactly one, at a
	// fixed place; most commands are of this kind and need no state.
	only      int32
	access    Access // of that one key
	flags     CommandFlags
	does      effect
	container bool // has subcommands: argv[1] decides
	specs     []spec
}

// fits reports whether the server would accept argc arguments. It rejects
// others before it looks at any key, and so do we: that removes most of what
// is no Redis traffic at all, such as "GET /index HTTP/1.1".
func (c *command) fits(argc int32) bool {
	if c.arity < 0 {
		return argc >= -c.arity
	}
	return argc == c.arity
}

// entry is one place of the name table. A name is compared as two folded
// words; only names that these do not decide are compared byte by byte.
type entry struct {
	lo, hi uint64
	parent CommandID // container of a subcommand, 0 for a command
	id     CommandID // 0: empty place
	size   uint8
	exact  bool // the words alone do not prove the name
}

// table finds commands by name. It is built once and then only read.
type table struct {
	commands []command // by id; commands[0] is "OTHER"
	entries  []entry   // open addressing, a power of two, at most half full
	shift    uint8
}

func newTable(extra []Row) *table {
	rows := make([]Row, 0, len(builtinRows)+len(httpRows)+len(extra))
	at := make(map[string]int, len(builtinRows)+len(httpRows)+len(extra))
	for _, list := range [][]Row{builtinRows, httpRows, extra} {
		for _, row := range list {
			if i, ok := at[row.Name]; ok {
				rows[i] = row // a later row replaces an earlier one
				continue
			}
			at[row.Name] = len(rows)
			rows = append(rows, row)
			if name, _, sub := strings.Cut(row.Name, " "); sub {
				if _, ok := at[name]; !ok {
					at[name] = len(rows)
					rows = append(rows, Row{Name: name, Arity: -1})
				}
			}
		}
	}
	t := &table{commands: make([]command, 1, len(rows)+1)}
	t.commands[0] = command{name: "OTHER", arity: -1}
	for _, row := range rows {
		t.commands = append(t.commands, compile(row))
	}
	places := 1 << bits.Len(uint(4*len(rows)))
	t.entries = make([]entry, places)
	t.shift = uint8(64 - bits.TrailingZeros(uint(places)))
	for i, row := range rows {
		name, parent := row.Name, CommandUnknown
		if container, sub, ok := strings.Cut(name, " "); ok {
			name, parent = sub, CommandID(at[container]+1)
			t.commands[parent].container = true
		}
		t.insert(name, parent, CommandID(i+1))
	}
	return t
}

func compile(row Row) command {
	c := command{name: row.Name, arity: int32(row.Arity), flags: row.Flags}
	for _, e := range effects {
		if e.name == row.Name {
			c.does = e.does
		}
	}
	for _, s := range row.Specs {
		c.specs = append(c.specs, compileSpec(s, c.arity))
	}
	if len(c.specs) == 1 && c.specs[0].kind == SpecRange && c.specs[0].first == c.specs[0].last {
		c.only, c.access = c.specs[0].first, c.specs[0].access
	}
	return c
}

func (t *table) insert(name string, parent, id CommandID) {
	e := entry{parent: parent, id: id, size: uint8(len(name))}
	b := []byte(name)
	e.lo, e.hi = fold(b, 0, len(b))
	e.exact = len(name) > 16
	for i := 0; i < len(name); i++ {
		if name[i] < 'A' || name[i] > 'Z' {
			e.exact = true
		}
	}
	mask := uint64(len(t.entries) - 1)
	for i := t.place(e.lo, e.hi, len(name), parent); ; i = (i + 1) & mask {
		if t.entries[i].id == 0 {
			t.entries[i] = e
			return
		}
	}
}

func (t *table) place(lo, hi uint64, n int, parent CommandID) uint64 {
	// Odd 64-bit constants; the table is fixed, so nobody can fill it with
	// colliding names and a plain multiplication is enough.
	h := lo*0x9e3779b97f4a7c15 ^ hi*0xc2b2ae3d27d4eb4f ^ (uint64(parent)<<8|uint64(n))*0xff51afd7ed558ccd
	return h * 0x9e3779b97f4a7c15 >> t.shift
}

// find returns the command whose name is b[off:off+n] in any case, as a
// subcommand of parent or, with parent 0, as a command of its own.
func (t *table) find(b []byte, off, n int, parent CommandID) CommandID {
	if n == 0 || n > maxNameLen {
		return CommandUnknown
	}
	lo, hi := fold(b, off, n)
	mask := uint64(len(t.entries) - 1)
	for i := t.place(lo, hi, n, parent); ; i = (i + 1) & mask {
		e := &t.entries[i&mask]
		if e.id == 0 {
			return CommandUnknown
		}
		if e.lo != lo || e.hi != hi || e.parent != parent || int(e.size) != n {
			continue
		}
		if e.exact && !t.same(e, b[off:off+n]) {
			continue
		}
		return e.id
	}
}

// same compares byte by byte: only letters may differ in case.
func (t *table) same(e *entry, b []byte) bool {
	name := t.commands[e.id].name
	return equalFold(b, name[len(name)-int(e.size):])
}

// equalFold reports whether b is word, which is upper case, in any case.
func equalFold(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i := 0; i < len(word); i++ {
		c := b[i]
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

const lower = 0x2020202020202020

// fold returns the first and the last eight bytes of b[off:off+n] with the
// case bit set. Up to eight bytes are all in lo.
func fold(b []byte, off, n int) (lo, hi uint64) {
	if n > 8 {
		return binary.LittleEndian.Uint64(b[off:]) | lower,
			binary.LittleEndian.Uint64(b[off+n-8:]) | lower
	}
	if off+8 <= len(b) {
		// Bytes behind the name are read along and cut off.
		lo = binary.LittleEndian.Uint64(b[off:])
	} else {
		for i := n - 1; i >= 0; i-- {
			lo = lo<<8 | uint64(b[off+i])
		}
	}
	return (lo | lower) & (1<<(8*uint(n)) - 1), 0
}
