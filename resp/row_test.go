package resp

import (
	"os"
	"slices"
	"strings"
	"testing"
)

var badRows = []struct{ name, in, want string }{
	{"no columns", "GET", "line 1: 1 columns, want command, arity, flags, keys, access"},
	{"empty name", "\t1\t\t-\t", "line 1: command name of 0 bytes, want 1 to 64"},
	{"long name", strings.Repeat("A", 65) + "\t1\t\t-\t", "line 1: command name of 65 bytes, want 1 to 64"},
	{"three words", "A B C\t1\t\t-\t", `line 1: command name "A B C" is not one word or two`},
	{"name ends in a space", "A \t1\t\t-\t", `line 1: command name "A " is not one word or two`},
	{"unprintable name", "A\x01\t1\t\t-\t", `line 1: command name "A\x01" has an unprintable byte`},
	{"no arity", "A\tx\t\t-\t", `line 1: arity "x" of A is no number of arguments`},
	{"arity 0", "A\t0\t\t-\t", `line 1: arity "0" of A is no number of arguments`},
	{"unknown flag", "A\t1\tsoft\t-\t", `line 1: flag "soft" of A is unknown`},
	{"unknown access", "A\t2\t\t1\tx", `line 1: A: access "x" is none of r, w, rw`},
	{"no access", "A\t2\t\t1\t", `line 1: A: access "" is none of r, w, rw`},
	{"key 0", "A\t2\t\t0\tr", `line 1: A: key spec "0": 0 is not in 1..65536`},
	{"no number", "A\t2\t\tx\tr", `line 1: A: key spec "x": "x" is no number`},
	{"huge number", "A\t2\t\t99999999999999999999\tr", `line 1: A: key spec "99999999999999999999": "99999999999999999999" is no number`},
	{"range without step", "A\t2\t\t1..2\tr", `line 1: A: key spec "1..2": a range needs a step: A..L/S`},
	{"step 0", "A\t2\t\t1..2/0\tr", `line 1: A: key spec "1..2/0": 0 is not in 1..65536`},
	{"count without start", "A\t2\t\t#1\tr", `line 1: A: key spec "#1": want #N+F/S`},
	{"count at 0", "A\t2\t\t#0+1/1\tr", `line 1: A: key spec "#0+1/1": 0 is not in 1..65536`},
	{"empty word", "A\t2\t\t@1\tr", `line 1: A: key spec "@1": option word of 0 bytes, want 1 to 64`},
	{"word at 0", "A\t2\t\tW@0\tr", `line 1: A: key spec "W@0": argument 0 is the command itself`},
	{"last word with a range", "A\t2\t\tW!@1..-1/1\tr", `line 1: A: key spec "W!@1..-1/1": a range cannot follow the last of several words`},
	{"five specs", "A\t2\t\t1,2,3,4,5\tr", `line 1: A: 5 key specs, at most 4`},
	{"a later line", "# comment\ncommand\tarity\n\nA\t2\t\t1\tr\nB\n", `line 5: 1 columns, want command, arity, flags, keys, access`},
	{"long line", strings.Repeat("x", maxLineSize+1), "line 1: bufio.Scanner: token too long"},
}

func TestBadRowsAreRefused(t *testing.T) {
	for _, test := range badRows {
		rows, err := ParseRows(strings.NewReader(test.in))
		if err == nil || err.Error() != test.want || rows != nil {
			t.Errorf("%s: %v, %v, want %s", test.name, rows, err, test.want)
		}
	}
	if _, err := ParseRows(strings.NewReader(strings.Repeat("A\t1\t\t-\t\n", maxRows+1))); err == nil {
		t.Error("any number of rows is read")
	}
}

// TestExtraRows teaches renamed and module commands and replaces a row.
func TestExtraRows(t *testing.T) {
	rows, err := ParseRows(strings.NewReader(strings.Join([]string{
		"myget\t2\treadonly\t1\tr",
		"B.COPY\t-3\twrite\t2,1\tw,r",
		"B.ADMIN FLUSH\t-2\tadmin\t2..-1/1\tw",
		"MYREAD\t-4\t\tSTREAMS@1..1:2/1\tr",
		"MYMIGRATE\t-6\twrite\t3,KEYS@-2..-1/1\trw",
		"ALL\t-2\t\t1..-1/1,STORE!@2\tr,w",
		"ECHO\t2\t\t1\tr",
		"SHORT\t-1\t\t3\tr",
	}, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	d := NewDecoder(Config{Extra: rows})
	if want := NewDecoder(Config{}).NumCommands() + 8; d.NumCommands() != want {
		t.Errorf("%d commands, want %d (seven rows, one container)", d.NumCommands(), want)
	}
	for _, test := range []struct {
		args, want string
	}{
		{"MyGet k", `MYGET "k"`},
		{"b.copy a b", `B.COPY "b" "a"`},
		{"b.admin flush a b", `B.ADMIN FLUSH "a" "b"`},
		{"b.admin other a b", `B.ADMIN`},
		{"myread count streams streams k 0", `MYREAD "k"`},
		{"mymigrate h p k 0 5", `MYMIGRATE "k"`},
		{"mymigrate h p k 0 5 keys a", `MYMIGRATE`},
		{"all a b store c", `ALL "a" "b" "store" "c" "c"`},
		{"echo k", `ECHO "k"`},
		{"short a", `SHORT`},
		{"short a b c", `SHORT "c"`},
		{"get k", `GET "k"`},
	} {
		for _, step := range []int{1000, 1} {
			l := &collector{d: d}
			feedSteps(d, array(strings.Fields(test.args)...), step, l.add)
			want := []string{test.want}
			if len(l.got) == 1 && strings.HasPrefix(test.want, "B.COPY") {
				// The order is that of the arguments.
				want = []string{`B.COPY "a" "b"`}
			}
			if !slices.Equal(l.got, want) {
				t.Errorf("%s in steps of %d: %q, want %q", test.args, step, l.got, want)
			}
		}
	}
}

func TestAccess(t *testing.T) {
	for _, test := range []struct {
		args string
		want []Access
	}{
		{"GET k", []Access{AccessRead}},
		{"SET k v", []Access{AccessRead | AccessWrite}}, // it may return the old value
		{"MSET k v", []Access{AccessWrite}},
		{"INCR k", []Access{AccessRead | AccessWrite}},
		{"COPY a b", []Access{AccessRead, AccessWrite}},
		{"ZUNIONSTORE d 2 a b", []Access{AccessWrite, AccessRead, AccessRead}},
		{"SORT k STORE d", []Access{AccessRead, AccessWrite}},
	} {
		var got []Access
		feedSteps(newDecoder(), array(strings.Fields(test.args)...), 1000, func(r *Request) {
			for _, k := range r.Keys {
				got = append(got, k.Access)
			}
		})
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.args, got, test.want)
		}
	}
}

// TestEveryCommandIsFound looks up each name as it is, in lower case and
// damaged in each byte, since the lookup compares folded words.
func TestEveryCommandIsFound(t *testing.T) {
	for id := 1; id < len(builtin.commands); id++ {
		name, parent := builtin.commands[id].name, CommandUnknown
		if container, sub, ok := strings.Cut(name, " "); ok {
			parent = builtin.find([]byte(container), 0, len(container), CommandUnknown)
			name = sub
		}
		for _, form := range []string{name, strings.ToLower(name)} {
			for _, b := range [][]byte{[]byte(form), []byte("xx" + form + "\r\nmore bytes")} {
				off := len(b) - len(form)
				if len(b) > len(form) {
					off = 2
				}
				if got := builtin.find(b, off, len(form), parent); got != CommandID(id) {
					t.Errorf("%q: command %d, want %d", b, got, id)
				}
			}
		}
		for i := range name {
			b := []byte(name)
			for _, flip := range []byte{0x20, 0x60, 0x80} {
				b[i] = name[i] ^ flip
				letter := name[i] >= 'A' && name[i] <= 'Z'
				if got := builtin.find(b, 0, len(b), parent); got == CommandID(id) && !(letter && flip == 0x20) {
					t.Errorf("%q is taken for %s", b, name)
				}
			}
		}
	}
}

func FuzzKeys(f *testing.F) {
	for _, l := range readTruth(f, "getkeys-truth.tsv") {
		f.Add(strings.Join(l.args, "\x1f"), "")
	}
	for _, row := range badRows {
		f.Add("A\x1fb", row.in)
	}
	if table, err := os.ReadFile("../data/command-keys.tsv"); err == nil {
		for line := range strings.Lines(string(table)) {
			if strings.ContainsAny(line, "#@") {
				f.Add(strings.SplitN(line, "\t", 2)[0]+"\x1fk\x1f2\x1fSTREAMS\x1fKEYS\x1fSTORE\x1fk", line)
			}
		}
	}
	f.Fuzz(func(t *testing.T, line, table string) {
		rows, err := ParseRows(strings.NewReader(table))
		if err != nil && rows != nil {
			t.Fatal("rows and an error")
		}
		d := newDecoder()
		if len(rows) > 0 && len(rows) < 20 {
			d = NewDecoder(Config{Extra: rows})
		}
		args := strings.Split(line, "\x1f")
		whole := &collector{d: d}
		feedSteps(d, array(args...), 1<<30, whole.add)
		for _, step := range []int{1, 13} {
			l := &collector{d: d}
			feedSteps(d, array(args...), step, l.add)
			if !slices.Equal(l.full, whole.full) {
				t.Fatalf("in steps of %d: %q\nwhole: %q", step, l.full, whole.full)
			}
		}
		if len(whole.got) > 1 {
			t.Fatalf("%d requests of one", len(whole.got))
		}
	})
}
