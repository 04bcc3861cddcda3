package resp

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Access says what a command does to a key: a set of bits.
type Access uint8

// The bits of Access.
const (
	AccessRead  Access = 1
	AccessWrite Access = 2
)

// CommandFlags are the published flags of a command: a set of bits.
type CommandFlags uint16

// The bits of CommandFlags, named as in the table.
const (
	CommandWrite CommandFlags = 1 << iota
	CommandReadonly
	CommandAdmin
	CommandPubsub
	CommandBlocking
	CommandNoscript
	CommandMovablekeys
	CommandNoAuth
	CommandDenyoom
	CommandFast
	CommandNoMulti
	CommandAsking
)

var flagNames = [...]string{
	"write", "readonly", "admin", "pubsub", "blocking", "noscript",
	"movablekeys", "no_auth", "denyoom", "fast", "no_multi", "asking",
}

// SpecKind is the form of a KeySpec.
type SpecKind uint8

const (
	// SpecRange is "A" or "A..L/S": argv[First], every Step-th up to Last.
	SpecRange SpecKind = iota
	// SpecCount is "#N+F/S": argv[First] holds a count; the keys begin
	// Offset arguments behind it, every Step-th.
	SpecCount
	// SpecWord is "WORD@P" and its kin: keys follow an option word that is
	// searched from argv[First] on.
	SpecWord
)

// KeySpec says where the keys of a command stand. The forms are described in
// data/README.md; argv[0] is the command.
type KeySpec struct {
	Kind   SpecKind
	Access Access
	First  int // first key, place of the count, or where the search begins
	Last   int // last key; negative: from the end
	Step   int
	Offset int    // SpecCount: distance from the count to the first key
	Word   string // SpecWord: upper case
	// LastWins: of several words the last one counts ("WORD!@P").
	LastWins bool
	// Half: the keys are the first half of what follows the word ("1:2").
	Half bool
	// Several: the word is followed by a range, not by one key.
	Several bool
}

// Row is one line of the command table. Rows are read-only after ParseRows.
type Row struct {
	Name  string // upper case; a subcommand is "CONTAINER SUB"
	Arity int    // arguments with the name; negative: at least
	Flags CommandFlags
	Specs []KeySpec
}

// Limits of a row, so that a file cannot make the decoder's fixed-size state
// too small or the table unbounded.
const (
	maxSpecs    = 4    // the most irregular command needs three
	maxNameLen  = 64   // the longest published name has 33 bytes
	maxRows     = 4096 // about six times today's table
	maxSpecArg  = 1 << 16
	maxLineSize = 1 << 16
)

// ParseRows reads rows in the format of data/command-keys.tsv: tab separated,
// name, arity, flags, keys, access; further columns are ignored, as are empty
// lines, lines that begin with "#" and the line of column names. The first bad
// line ends the reading with an error that names the line and what is wrong.
func ParseRows(r io.Reader) ([]Row, error) {
	var rows []Row
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 4096), maxLineSize)
	line := 0
	for sc.Scan() {
		line++
		text := strings.TrimRight(sc.Text(), "\r")
		if text == "" || text[0] == '#' || strings.HasPrefix(text, "command\t") {
			continue
		}
		if len(rows) == maxRows {
			return nil, fmt.Errorf("line %d: more than %d rows", line, maxRows)
		}
		row, err := parseRow(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		rows = append(rows, row)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", line+1, err)
	}
	return rows, nil
}

func parseRow(text string) (Row, error) {
	col := strings.Split(text, "\t")
	if len(col) < 5 {
		return Row{}, fmt.Errorf("%d columns, want command, arity, flags, keys, access", len(col))
	}
	row := Row{Name: strings.ToUpper(col[0])}
	if err := checkName(row.Name); err != nil {
		return Row{}, err
	}
	arity, err := strconv.Atoi(col[1])
	if err != nil || arity == 0 || arity > maxSpecArg || arity < -maxSpecArg {
		return Row{}, fmt.Errorf("arity %q of %s is no number of arguments", col[1], row.Name)
	}
	row.Arity = arity
	for _, name := range strings.Fields(col[2]) {
		bit, ok := flagBit(name)
		if !ok {
			return Row{}, fmt.Errorf("flag %q of %s is unknown", name, row.Name)
		}
		row.Flags |= bit
	}
	row.Specs, err = parseSpecs(col[3], col[4])
	if err != nil {
		return Row{}, fmt.Errorf("%s: %w", row.Name, err)
	}
	return row, nil
}

func checkName(name string) error {
	if name == "" || len(name) > maxNameLen {
		return fmt.Errorf("command name of %d bytes, want 1 to %d", len(name), maxNameLen)
	}
	if strings.Count(name, " ") > 1 || name[0] == ' ' || name[len(name)-1] == ' ' {
		return fmt.Errorf("command name %q is not one word or two", name)
	}
	for i := 0; i < len(name); i++ {
		if name[i] < ' ' || name[i] > '~' {
			return fmt.Errorf("command name %q has an unprintable byte", name)
		}
	}
	return nil
}

func flagBit(name string) (CommandFlags, bool) {
	for i, s := range flagNames {
		if s == name {
			return 1 << i, true
		}
	}
	return 0, false
}

func parseSpecs(keys, access string) ([]KeySpec, error) {
	if keys == "-" || keys == "" {
		return nil, nil
	}
	parts := strings.Split(keys, ",")
	if len(parts) > maxSpecs {
		return nil, fmt.Errorf("%d key specs, at most %d", len(parts), maxSpecs)
	}
	modes := strings.Split(access, ",")
	specs := make([]KeySpec, 0, len(parts))
	for i, part := range parts {
		spec, err := parseSpec(part)
		if err != nil {
			return nil, fmt.Errorf("key spec %q: %w", part, err)
		}
		// One access for several specs holds for all of them.
		switch mode := modes[min(i, len(modes)-1)]; mode {
		case "r":
			spec.Access = AccessRead
		case "w":
			spec.Access = AccessWrite
		case "rw":
			spec.Access = AccessRead | AccessWrite
		default:
			return nil, fmt.Errorf("access %q is none of r, w, rw", mode)
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

func parseSpec(s string) (KeySpec, error) {
	if strings.HasPrefix(s, "#") {
		return parseCountSpec(s[1:])
	}
	word, rest, found := strings.Cut(s, "@")
	if found {
		return parseWordSpec(word, rest)
	}
	spec := KeySpec{Kind: SpecRange, Step: 1}
	first, rest, isRange := strings.Cut(s, "..")
	if err := number(first, 1, &spec.First); err != nil {
		return spec, err
	}
	spec.Last = spec.First
	if isRange {
		return spec, parseTail(rest, &spec)
	}
	return spec, nil
}

// parseCountSpec reads "N+F/S".
func parseCountSpec(s string) (KeySpec, error) {
	spec := KeySpec{Kind: SpecCount}
	n, rest, ok := strings.Cut(s, "+")
	f, step, ok2 := strings.Cut(rest, "/")
	if !ok || !ok2 {
		return spec, fmt.Errorf("want #N+F/S")
	}
	if err := number(n, 1, &spec.First); err != nil {
		return spec, err
	}
	if err := number(f, 1, &spec.Offset); err != nil {
		return spec, err
	}
	return spec, number(step, 1, &spec.Step)
}

// parseWordSpec reads the word and what stands behind the "@".
func parseWordSpec(word, s string) (KeySpec, error) {
	spec := KeySpec{Kind: SpecWord, Step: 1}
	spec.Word, spec.LastWins = strings.CutSuffix(strings.ToUpper(word), "!")
	if spec.Word == "" || len(spec.Word) > maxNameLen {
		return spec, fmt.Errorf("option word of %d bytes, want 1 to %d", len(spec.Word), maxNameLen)
	}
	first, rest, isRange := strings.Cut(s, "..")
	if err := number(first, -maxSpecArg, &spec.First); err != nil {
		return spec, err
	}
	if spec.First == 0 {
		return spec, fmt.Errorf("argument 0 is the command itself")
	}
	if !isRange {
		return spec, nil
	}
	if spec.LastWins {
		return spec, fmt.Errorf("a range cannot follow the last of several words")
	}
	spec.Several = true
	if half, ok := strings.CutPrefix(rest, "1:2/"); ok {
		spec.Half = true
		return spec, number(half, 1, &spec.Step)
	}
	return spec, parseTail(rest, &spec)
}

// parseTail reads "L/S".
func parseTail(s string, spec *KeySpec) error {
	last, step, ok := strings.Cut(s, "/")
	if !ok {
		return fmt.Errorf("a range needs a step: A..L/S")
	}
	if err := number(last, -maxSpecArg, &spec.Last); err != nil {
		return err
	}
	return number(step, 1, &spec.Step)
}

func number(s string, least int, v *int) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return fmt.Errorf("%q is no number", s)
	}
	if n < least || n > maxSpecArg {
		return fmt.Errorf("%d is not in %d..%d", n, least, maxSpecArg)
	}
	*v = n
	return nil
}
