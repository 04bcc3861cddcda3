package top

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/hotsniff/hotsniff/internal/report"
)

var update = flag.Bool("update", false, "write the golden frames anew")

var testStart = time.Date(2026, 11, 27, 3, 4, 5, 0, time.UTC)

// testKey is a key with figures that follow from its share.
func testKey(name string, share float64, state string) report.Key {
	n := uint64(share * 60 * 5000)
	k := report.Key{
		Key: name, Port: 6379, State: state, Share: share, ShareLow: share * 0.98, ShareHigh: share * 1.02, Accesses: n,
		AccessesPerSecond: share * 5000, Reads: n * 98 / 100, Writes: n - n*98/100, RequestBytes: n * 40, ReplyBytes: n * 1000,
		Clients: 8, TopClient: &report.TopClient{Address: "10.0.0.7", Share: 0.4}, Commands: map[string]uint64{"GET": n * 98 / 100, "SET": n - n*98/100},
	}
	if state == "hot" || state == "cooling" || state == "pinned" {
		since := testStart.Add(-12 * time.Minute)
		k.Since = &since
	}
	return k
}

// testReport is a report at a time, in which the first key becomes hotter.
func testReport(at time.Time, window float64, share float64) *report.Report {
	r := &report.Report{
		Schema: report.Schema, Node: "redis-1", Sources: []string{"eth0"}, From: at.Add(-time.Duration(window) * time.Second), To: at,
		WindowSeconds: window, Requests: uint64(window * 4800), Accesses: uint64(window * 5000), SampledAccesses: uint64(window * 5000),
		SampleEvery: 1, DistinctKeys: 4812, Commands: map[string]uint64{"GET": 280000},
		Capture: report.Capture{Packets: 300000, Connections: 12},
	}
	r.Keys = append(r.Keys, testKey("product:1", share, "hot"), testKey("session:0123456789abcdef:profile:settings", 0.11, "cooling"),
		testKey("k", 0.031, "probable"), testKey("sale:1", 0.021, "pinned"))
	wide := &r.Keys[1]
	wide.ShareLow, wide.ShareHigh, wide.AccessesError = 0.06, 0.15, 1200
	wide.TopClient = &report.TopClient{Address: "2001:db8::1:2:3", Share: 0.99}
	for i := range 60 {
		r.Keys = append(r.Keys, testKey(fmt.Sprintf("item:%d", i+1), 0.01/float64(i+1), "none"))
	}
	return r
}

// testModel is a Model that has looked for a minute.
func testModel(o Options) *Model {
	m := New(o)
	for i := range 61 {
		at := testStart.Add(time.Duration(i-60) * time.Second)
		share := 0.26 * float64(i) / 60
		if i > 30 && i < 40 {
			share = 0.02
		}
		m.Update(SampleMsg{&Sample{Slow: testReport(at, 60, 0.26), Fast: testReport(at, 5, share), Requests: uint64(i) * 5012, CPURatio: 0.012}})
	}
	return m
}

func press(m *Model, keys ...string) {
	special := map[string]tea.KeyPressMsg{
		"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "space": {Code: ' ', Text: " "}, "up": {Code: tea.KeyUp},
		"down": {Code: tea.KeyDown}, "pgdown": {Code: tea.KeyPgDown}, "pgup": {Code: tea.KeyPgUp}, "home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd},
		"left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight}, "backspace": {Code: tea.KeyBackspace},
		"ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+u": {Code: 'u', Mod: tea.ModCtrl},
	}
	for _, k := range keys {
		msg, ok := special[k]
		if !ok {
			msg = tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
		}
		m.Update(msg)
	}
}

func frame(m *Model, width, height int) string {
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	return m.View().Content
}

// TestFramesLookAsTheyDid compares whole frames. -update writes them anew:
// look at them.
func TestFramesLookAsTheyDid(t *testing.T) {
	unicode, ascii := Options{Source: "eth0"}, Options{Source: "eth0", ASCII: true, Plain: true}
	colour := Options{Source: "eth0", Color: true}
	plain := Options{Source: "eth0", Plain: true}
	for _, c := range []struct {
		name          string
		options       Options
		width, height int
		keys          []string
	}{
		{"table-80x24", plain, 80, 24, nil},
		{"table-200x60", plain, 200, 60, nil},
		{"table-120x30", plain, 120, 30, nil},
		{"table-40x10", plain, 40, 10, nil},
		{"table-ascii-80x24", ascii, 80, 24, nil},
		{"table-ascii-200x60", ascii, 200, 60, nil},
		{"table-nocolor-80x24", unicode, 80, 24, nil},
		{"table-color-80x24", colour, 80, 24, []string{"down", "down"}},
		{"table-fast-frozen-paused-80x24", plain, 80, 24, []string{"w", "f", "space"}},
		{"filter-80x24", plain, 80, 24, []string{"/", "p", "r", "o"}},
		{"detail-80x24", plain, 80, 24, []string{"enter"}},
		{"detail-ascii-80x24", ascii, 80, 24, []string{"down", "enter"}},
		{"detail-200x60", plain, 200, 60, []string{"enter"}},
		{"help-80x24", plain, 80, 24, []string{"?"}},
		{"help-ascii-80x24", ascii, 80, 24, []string{"?"}},
		{"once-80x23", Options{Source: "eth0", Plain: true, Still: true}, 80, 23, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testModel(c.options)
			m.Update(tea.WindowSizeMsg{Width: c.width, Height: c.height})
			press(m, c.keys...)
			got := m.View().Content + "\n"
			checkFrame(t, got, c.width, c.height, c.options)
			path := filepath.Join("testdata", c.name+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// checkFrame holds what is true of every frame: it fits, and nothing but the
// looks of this package controls the terminal.
func checkFrame(t *testing.T, frame string, width, height int, o Options) {
	t.Helper()
	frame = strings.TrimSuffix(frame, "\n")
	lines := strings.Split(frame, "\n")
	if len(lines) > height {
		t.Errorf("%d lines in a frame of %d", len(lines), height)
	}
	for i, l := range lines {
		plain := sgr.ReplaceAllString(l, "")
		if o.Plain && plain != l {
			t.Errorf("line %d has control sequences: %q", i+1, l)
		}
		for _, r := range plain {
			if !unicode.IsPrint(r) || unicode.Is(unicode.M, r) || unicode.Is(unsafeRunes, r) || o.ASCII && r >= 0x80 {
				t.Errorf("line %d has %U: %q", i+1, r, plain)
			}
		}
		if !utf8.ValidString(plain) {
			t.Errorf("line %d is not valid UTF-8: %q", i+1, plain)
		}
		if w := ansi.StringWidth(plain); w > width || w != ansi.StringWidthWc(plain) {
			t.Errorf("line %d has %d cells of %d: %q", i+1, w, width, plain)
		}
	}
}

// hostileKeys would move the cursor, set the title, hide, join or reorder
// text, break lines, or take another width than they seem to.
var hostileKeys = []string{
	"", "x", strings.Repeat("long", 2500), "\x1b[2J\x1b[H", "\x1b]0;owned\a", "\x1b[31mred", "a\r\nb\tc\vd\be", "\u202egnp.exe", "\u2067rtl\u2069",
	"שלום:1", "مفتاح:2", "\u200b\u200d\ufeff", "e\u0301\u0301\u0301\u0301", "zal\u0334\u0335go", "\u009b31m", "\xff\x00\xfe", "漢字:キー", "👍🏽", "👨‍👩‍👧‍👦", "🇩🇪🇫🇷",
	"각\u1100\u1161", "\u0e33\u0e33", "ｶﾞ", "नमस्ते", "\u3164\u2800\u00a0\u2003", "☎️", "\U000e0041\U000e0042", "\u2028\u2029", "<b>&amp;", "%s%n", strings.Repeat("漢", 500),
	"\x1bPq#0;2;0;0;0\x1b\\", "\x9d8;;http://x\x9c", "a\u0085b", "\u061c\u200e\u200f",
}

func hostileModel(o Options) *Model {
	m := New(o)
	m.Update(SampleMsg{hostileSample()})
	return m
}

func hostileSample() *Sample {
	make := func(window float64) *report.Report {
		r := testReport(testStart, window, 0.26)
		r.Keys = nil
		for i, raw := range hostileKeys {
			k := testKey("", 0.3/float64(i+1), []string{"hot", "none", "cooling", "\x1b[5m"}[i%4])
			k.Key, k.KeyBase64 = report.EscapeKey([]byte(raw))
			k.Port = uint16(6379 + i%2)
			k.Commands = map[string]uint64{raw: 7, "GET": 1}
			k.TopClient = &report.TopClient{Address: raw, Share: 1}
			k.Rule, k.Action = raw, raw
			r.Keys = append(r.Keys, k)
		}
		r.Node, r.Sources = hostileKeys[3], []string{hostileKeys[4]}
		r.Capture.DecodeErrors = map[string]uint64{"\x1b[2J": 1}
		return r
	}
	return &Sample{Slow: make(60), Fast: make(5), Warning: ""}
}

func TestNothingInAKeyControlsTheTerminal(t *testing.T) {
	for _, o := range []Options{{Color: true}, {ASCII: true}, {Plain: true, Still: true}} {
		o.Source = hostileKeys[3]
		for _, size := range [][2]int{{80, 24}, {200, 60}, {1, 1}, {2, 2}, {7, 3}, {20, 5}, {33, 8}, {1000, 100}, {5000, 3}, {0, 0}, {-1, -1}} {
			m := hostileModel(o)
			w, h := min(max(size[0], 1), maxSide), min(max(size[1], 1), maxSide)
			checkFrame(t, frame(m, size[0], size[1]), w, h, o)
			for i := range hostileKeys {
				if size[0] != 80 && i > 2 {
					break // the same once more
				}
				press(m, "enter")
				checkFrame(t, frame(m, size[0], size[1]), w, h, o)
				press(m, "esc", "down")
			}
			press(m, "?")
			checkFrame(t, frame(m, size[0], size[1]), w, h, o)
			press(m, "esc", "/")
			m.Update(tea.PasteMsg{Content: strings.Join(hostileKeys, "")})
			checkFrame(t, frame(m, size[0], size[1]), w, h, o)
			m.Update(TroubleMsg{fmt.Errorf("%s", hostileKeys[3])})
			m.Update(NoticeMsg{hostileKeys[4]})
			checkFrame(t, frame(m, size[0], size[1]), w, h, o)
		}
	}
}

// TestColumnsStandBelowEachOther: whatever a key is, what comes after it in its
// row begins where its title does.
func TestColumnsStandBelowEachOther(t *testing.T) {
	for _, width := range []int{60, 80, 120, 200} {
		m := hostileModel(Options{Plain: true})
		lines := strings.Split(frame(m, width, 60), "\n")
		title := ansi.StringWidth(lines[3][:strings.Index(lines[3], "SHARE")]) + len("SHARE")
		for i, l := range lines[4 : 4+len(hostileKeys)] {
			// The share is aligned to the right below its title and the mark.
			cells := ansi.Cut(l, title, title+1)
			if got := strings.TrimRight(ansi.Cut(l, 0, title+1), " "); !strings.HasSuffix(got, "%") || cells == "" {
				t.Errorf("width %d, row %d: %q has no share at cell %d", width, i, l, title)
			}
		}
	}
}

// TestEveryRuneThatIsDrawnHasOneWidth sweeps over all characters: those that
// are not escaped have the same width by both measures, alone and between
// others.
func TestEveryRuneThatIsDrawnHasOneWidth(t *testing.T) {
	drawn := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		w := runeWidth(r, false)
		if w == 0 || !utf8.ValidRune(r) {
			continue
		}
		drawn++
		s := string(r)
		around := "a" + s + "b" + s + s + "漢" + s + "각" + s + "👍" + s
		want := 1 + 1 + 2 + 2 + 2 + 6*w
		if got, wc := ansi.StringWidth(around), ansi.StringWidthWc(around); got != want || wc != want {
			t.Fatalf("%U in %q: got %d and %d cells; want %d", r, around, got, wc, want)
		}
	}
	if drawn < 50000 {
		t.Errorf("only %d characters are drawn: scripts that people use are missing", drawn)
	}
}

func TestClipKeepsBothEnds(t *testing.T) {
	f := func(in string, width int, ascii bool, want string) {
		t.Helper()
		got, used := clip(in, width, ascii)
		if got != want || used != ansi.StringWidth(got) || used > max(width, 0) {
			t.Errorf("clip(%q, %d) = %q, %d; want %q", in, width, got, used, want)
		}
	}
	f("abc", 3, false, "abc")
	f("abcdefgh", 5, false, "ab…gh")
	f("abcdefgh", 5, true, "ab..h")
	f("abcdefgh", 1, false, "…")
	f("abcdefgh", 1, true, "")
	f("abc", 0, false, "")
	f("漢字漢字", 5, false, "漢…字")
	f("漢字漢字", 6, false, "漢…字")
	f("a\x1bb", 6, false, `a\x1bb`)
	f("a\x1bb", 5, false, `a…b`) // an escape is never cut in two
	f("é", 10, true, `\u{e9}`)
	f(strings.Repeat("x", 10000)+"end", 9, false, "xxxx…xend")
}

func TestGraphsAreTotal(t *testing.T) {
	for _, g := range []*glyphs{&unicodeGlyphs, &asciiGlyphs} {
		for _, share := range []float64{0, 1e-9, 0.01, 0.26, 0.5, 1, 2, -1, math.NaN(), math.Inf(1)} {
			for _, low := range []float64{0, 0.2, 0.3, 1, -5, math.NaN()} {
				for _, width := range []int{1, 8, 40} {
					if got := ansi.StringWidth(g.bar(share, low, share+0.1, 0.5, width)); got != width {
						t.Errorf("bar of %v from %v in %d: %d cells", share, low, width, got)
					}
				}
			}
			if got := ansi.StringWidth(g.spark([]float64{share, -1, share}, 0.3)); got != 3 {
				t.Errorf("spark of %v: %d cells", share, got)
			}
			for _, l := range g.chart([]float64{share, -1, 0}, 0.3, 4) {
				if got := ansi.StringWidth(l); got != 3 {
					t.Errorf("chart of %v: %d cells", share, got)
				}
			}
		}
	}
}

func TestBarsShowWhatIsSure(t *testing.T) {
	f := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	}
	g, a := &unicodeGlyphs, &asciiGlyphs
	f(g.bar(0.5, 0.49, 0.51, 1, 8), "████    ")
	f(g.bar(0.5, 0.25, 0.75, 1, 8), "██▒▒▒▒  ")
	f(g.bar(0.001, 0.001, 0.001, 1, 8), "▏       ")
	f(g.bar(0, 0, 0, 1, 4), "    ")
	f(g.bar(0.3, 0.3, 0.3, 1, 4), "█▏  ")
	f(a.bar(0.5, 0.25, 0.75, 1, 8), "##++++  ")
	f(a.bar(0.001, 0.001, 0.001, 1, 4), ".   ")
	f(g.spark([]float64{-1, 0, 0.5, 1}, 1), " ▁▅█")
	f(strings.Join(g.chart([]float64{-1, 0, 0.5, 1}, 1, 2), "|"), "   █| ▁██")
}

func TestAWindowIsWholeWithTheSecondThatIsNotOver(t *testing.T) {
	for covered, want := range map[time.Duration]string{
		59250 * time.Millisecond: "window 60s", 59 * time.Second: "window 60s", 6500 * time.Millisecond: "window 7s of 60s",
	} {
		m, r := New(Options{}), testReport(testStart, 60, 0.26)
		r.From = testStart.Add(-covered)
		m.Update(SampleMsg{&Sample{Slow: r, Fast: r}})
		if head, _, _ := strings.Cut(Render(m, 126, 20), "\n"); !strings.Contains(head, "m"+want+"\x1b") {
			t.Errorf("%v: no %q in %q", covered, want, head)
		}
	}
}

func TestWhatIsNotWatchedIsNotZero(t *testing.T) {
	m, r := New(Options{}), testReport(testStart, 60, 0.26)
	k := &r.Keys[0]
	k.RequestBytes, k.ReplyBytes, k.Clients, k.TopClient, k.Commands = 0, 0, 0, nil, nil
	m.Update(SampleMsg{&Sample{Slow: r, Fast: r}})
	for name, want := range map[string]string{"R/W": "-", "B/S": "-", "CLNT": "-"} {
		for i := range columns {
			if c := &columns[i]; c.title == name && c.text(&view{m: m, seconds: 60}, k) != want {
				t.Errorf("%s: got %q", name, c.text(&view{m: m, seconds: 60}, k))
			}
		}
	}
	press(m, "enter")
	if s := Render(m, 80, 24); !strings.Contains(s, "not known") || strings.Contains(s, "0 B") {
		t.Error(s)
	}
}
