package hotlist

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func testList() *List {
	return &List{
		Node: "redis-1", EpochMs: 1767225600000, Seq: 42, AtMs: 1767225661000, TTLMs: 15000,
		WindowSeconds: 60, SampleEvery: 1, AccessesPerSecond: 102000,
		Entries: []Entry{
			{
				Key: "product:1", Port: 6379, State: StateHot, Share: 0.26, ShareLow: 0.257,
				AccessesPerSecond: 26100, WriteRatio: 0.01, Clients: 372, SinceMs: 1767225660000,
				Action: ActionLocalize, Reason: ReasonReadHot, TTLMs: 2000, Copies: 8,
			},
			{Key: "bin\xff\x00é", Port: 6380, State: StateCooling, Share: 0.01, Action: ActionAggregate, Reason: ReasonWriteHot},
			{Key: "", State: StatePinned, Action: ActionLimit, Reason: ReasonManual},
		},
	}
}

func TestListSurvivesTheWire(t *testing.T) {
	want := testList()
	b, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatalf("Decode(%s): %v", b, err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if !strings.Contains(string(b), `"key":"bin\\xff\u0000é","key_base64":"Ymlu/wDDqQ=="`) {
		t.Errorf("key that is not UTF-8 is written as %s", b)
	}
}

func TestEncodeClampsAndRefuses(t *testing.T) {
	l := testList()
	l.Entries = []Entry{{Key: "k", Share: math.NaN(), ShareLow: 2, AccessesPerSecond: math.Inf(1), WriteRatio: -1, Copies: 1 << 30, TTLMs: 1 << 60}}
	b, err := Encode(l)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	want := Entry{Key: "k", AccessesPerSecond: maxRate, Copies: MaxCopies, TTLMs: MaxTTLMs}
	if d := cmp.Diff(want, got.Entries[0]); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}

	refuse := func(name string, want error, change func(l *List)) {
		t.Helper()
		l := testList()
		change(l)
		if _, err := Encode(l); !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", name, err, want)
		}
	}
	refuse("no node", ErrMalformed, func(l *List) { l.Node = "" })
	refuse("node with a line feed", ErrMalformed, func(l *List) { l.Node = "a\nb" })
	refuse("no epoch", ErrMalformed, func(l *List) { l.EpochMs = 0 })
	refuse("no seq", ErrMalformed, func(l *List) { l.Seq = 0 })
	refuse("seq that a float64 cannot hold", ErrMalformed, func(l *List) { l.Seq = maxSequence + 1 })
	refuse("no ttl", ErrMalformed, func(l *List) { l.TTLMs = 0 })
	refuse("long key", ErrTooLarge, func(l *List) { l.Entries[0].Key = strings.Repeat("k", MaxKeyBytes+1) })
	refuse("too many keys", ErrTooLarge, func(l *List) { l.Entries = make([]Entry, MaxKeys+1) })
	refuse("too many bytes", ErrTooLarge, func(l *List) {
		l.Entries = nil
		for i := range 200 {
			l.Entries = append(l.Entries, Entry{Key: fmt.Sprint(i) + strings.Repeat("\xff", MaxKeyBytes-8)})
		}
	})
}

const header = `"schema":"hotsniff.list/v1","node":"n","epoch":1,"seq":1,"at":1,"ttl_ms":1`

// malformed lists are also the seeds of FuzzList.
var malformed = []struct {
	name, in string
	want     error
}{
	{"nothing", ``, ErrMalformed},
	{"not JSON", `hello`, ErrMalformed},
	{"JSON of another kind", `[1]`, ErrMalformed},
	{"cut in the middle", `{"schema":"hotsniff.list/v1","no`, ErrMalformed},
	{"no schema", `{}`, ErrSchema},
	{"another message", `{"schema":"hotsniff.manual/v1"}`, ErrSchema},
	{"the next version", `{"schema":"hotsniff.list/v2","node":7}`, ErrVersion},
	{"schema of another type", `{"schema":7}`, ErrMalformed},
	{"no node", `{"schema":"hotsniff.list/v1","epoch":1,"seq":1,"at":1,"ttl_ms":1}`, ErrMalformed},
	{"node with an escape sequence", `{"schema":"hotsniff.list/v1","node":"\u001b[2J","epoch":1,"seq":1,"at":1,"ttl_ms":1}`, ErrMalformed},
	{"negative seq", `{"schema":"hotsniff.list/v1","node":"n","epoch":1,"seq":-1,"at":1,"ttl_ms":1}`, ErrMalformed},
	{"seq beyond 53 bits", `{"schema":"hotsniff.list/v1","node":"n","epoch":1,"seq":9007199254740993,"at":1,"ttl_ms":1}`, ErrMalformed},
	{"epoch as text", `{"schema":"hotsniff.list/v1","node":"n","epoch":"1","seq":1,"at":1,"ttl_ms":1}`, ErrMalformed},
	{"zero ttl", `{"schema":"hotsniff.list/v1","node":"n","epoch":1,"seq":1,"at":1,"ttl_ms":0}`, ErrMalformed},
	{"number that overflows", `{` + header + `,"accesses_per_second":1e999}`, ErrMalformed},
	{"keys of another type", `{` + header + `,"keys":{}}`, ErrMalformed},
	{"entry of another type", `{` + header + `,"keys":[1]}`, ErrMalformed},
	{"entry without key", `{` + header + `,"keys":[{"share":1}]}`, ErrMalformed},
	{"bad base64", `{` + header + `,"keys":[{"key":"a","key_base64":"!"}]}`, ErrMalformed},
	{"base64 with stray bits", `{` + header + `,"keys":[{"key":"a","key_base64":"/x=="}]}`, ErrMalformed},
	{"long key", `{` + header + `,"keys":[{"key":"` + strings.Repeat("k", MaxKeyBytes+1) + `"}]}`, ErrMalformed},
	{"too many keys", `{` + header + `,"keys":[` + strings.Repeat(`{"key":""},`, MaxKeys) + `{"key":""}]}`, ErrTooLarge},
	{"too many bytes", `{` + header + strings.Repeat(" ", MaxListBytes) + `}`, ErrTooLarge},
	{"deep nesting", `{` + header + `,"x":` + strings.Repeat("[", 100000) + `}`, ErrMalformed},
}

func TestDecodeRefuses(t *testing.T) {
	for _, tt := range malformed {
		l, err := Decode([]byte(tt.in))
		if !errors.Is(err, tt.want) || l != nil {
			t.Errorf("%s: %v, %v; want error %v", tt.name, l, err, tt.want)
		}
	}
}

func TestDecodeIsTolerant(t *testing.T) {
	in := `{` + header + `,"new_field":[1,{}],"ttl_ms":99999999,"sample_every":-4,"keys":[
		{"key":"a","port":70000,"state":"boiling","share":7,"share_low":9,"write_ratio":-1,"clients":-1,"since":-1,"action":"explode","reason":"why","ttl_ms":-5,"copies":1000000000,"new":true},
		{"key":"a","port":65535,"share":0.5},
		{"key":"b","port":-3}]}`
	got, err := Decode([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	want := &List{Node: "n", EpochMs: 1, Seq: 1, AtMs: 1, TTLMs: MaxTTLMs, SampleEvery: 1, Entries: []Entry{
		{Key: "a", Port: 65535, Share: 1, ShareLow: 1, Copies: MaxCopies},
		{Key: "b"},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestErrorsHoldNoTextOfTheMessage(t *testing.T) {
	for _, tt := range malformed {
		if _, err := Decode([]byte(tt.in)); err != nil && len(err.Error()) > 80 {
			t.Errorf("%s: error of %d bytes", tt.name, len(err.Error()))
		}
	}
}

func TestEnumNamesAreDistinct(t *testing.T) {
	if a, ok := ParseAction("replicate"); a != ActionReplicate || !ok {
		t.Errorf("ParseAction(replicate) = %v, %v", a, ok)
	}
	if a, ok := ParseAction("explode"); a != ActionNone || ok {
		t.Errorf("ParseAction(explode) = %v, %v", a, ok)
	}
	if got := State(200).String(); got != "hot" {
		t.Errorf("State(200) = %q", got)
	}
}

func FuzzList(f *testing.F) {
	for _, tt := range malformed {
		if len(tt.in) < 4096 {
			f.Add([]byte(tt.in))
		}
	}
	good, err := Encode(testList())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := Decode(b)
		if err != nil {
			return
		}
		if len(l.Entries) > MaxKeys || !ValidNode(l.Node) || l.TTLMs <= 0 || l.TTLMs > MaxTTLMs {
			t.Fatalf("out of bounds: %+v", l)
		}
		for _, e := range l.Entries {
			if len(e.Key) > MaxKeyBytes || !(e.Share >= 0 && e.Share <= 1) || e.ShareLow > e.Share || e.Copies > MaxCopies {
				t.Fatalf("entry out of bounds: %+v", e)
			}
		}
		again, err := Encode(l)
		if err != nil {
			t.Fatalf("a decoded list does not encode: %v", err)
		}
		l2, err := Decode(again)
		if err != nil {
			t.Fatalf("an encoded list does not decode: %v", err)
		}
		if d := cmp.Diff(l, l2); d != "" {
			t.Fatalf("changed on the way:\n%s", d)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	l := testList()
	for i := range 100 {
		e := l.Entries[0]
		e.Key = fmt.Sprintf("product:%d", i)
		l.Entries = append(l.Entries, e)
	}
	msg, err := Encode(l)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(msg)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(msg); err != nil {
			b.Fatal(err)
		}
	}
}
