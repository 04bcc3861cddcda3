package resp

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// array returns args as a RESP array.
func array(args ...string) []byte {
	b := append([]byte("*"), strconv.Itoa(len(args))...)
	b = append(b, "\r\n"...)
	for _, a := range args {
		b = append(b, '$')
		b = strconv.AppendInt(b, int64(len(a)), 10)
		b = append(b, "\r\n"...)
		b = append(b, a...)
		b = append(b, "\r\n"...)
	}
	return b
}

type truthLine struct {
	args, keys []string
	status     string
}

func readTruth(t testing.TB, name string) []truthLine {
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines []truthLine
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		if strings.HasPrefix(sc.Text(), "#") {
			continue
		}
		col := strings.Split(sc.Text(), "\t")
		var l truthLine
		if err := json.Unmarshal([]byte(col[0]), &l.args); err != nil {
			t.Fatalf("%s: %v", sc.Text(), err)
		}
		if err := json.Unmarshal([]byte(col[1]), &l.keys); err != nil {
			t.Fatalf("%s: %v", sc.Text(), err)
		}
		l.status = col[2]
		lines = append(lines, l)
	}
	return lines
}

func keyStrings(r *Request) []string {
	var keys []string
	for _, k := range r.Keys {
		keys = append(keys, string(k.Bytes))
	}
	return keys
}

// TestKeysAsTheServer compares with what COMMAND GETKEYS of redis-server says,
// with the whole request in one piece and byte by byte.
func TestKeysAsTheServer(t *testing.T) {
	for _, file := range []struct {
		name  string
		lines int
	}{{"getkeys-truth.tsv", 374}, {"getkeys-derived.tsv", 67}} {
		lines := readTruth(t, file.name)
		if len(lines) != file.lines {
			t.Errorf("%s: %d lines, want %d", file.name, len(lines), file.lines)
		}
		for _, l := range lines {
			want := l.keys
			if strings.Contains(l.status, "Invalid command specified") && l.args[0] == "JSON.GET" {
				want = []string{l.args[1]} // that server had no JSON module
			}
			for _, step := range []int{1 << 20, 1} {
				var got []string
				requests := 0
				feedSteps(newDecoder(), array(l.args...), step, func(r *Request) {
					got = append(got, keyStrings(r)...)
					requests++
				})
				slices.Sort(got)
				want = slices.Sorted(slices.Values(want))
				if requests != 1 || !slices.Equal(got, want) {
					t.Errorf("%q in steps of %d: keys %q of %d requests, want %q of 1", l.args, step, got, requests, want)
				}
			}
		}
	}
}

// builtin is the table without extra rows; building it takes longer than most
// tests.
var builtin = newTable(nil)

func newDecoder() *Decoder { return &Decoder{t: builtin} }

// feedSteps feeds b to a fresh connection of d in steps.
func feedSteps(d *Decoder, b []byte, step int, each func(*Request)) {
	var c Conn
	var r Request
	d.Open(&c, true)
	for len(b) > 0 {
		n := min(step, len(b))
		d.Feed(&c, slices.Clone(b[:n]), true)
		for d.Next(&r) {
			each(&r)
		}
		b = b[n:]
	}
	d.Close(&c)
	for d.Next(&r) {
		each(&r)
	}
}
