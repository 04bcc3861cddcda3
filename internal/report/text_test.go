package report

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"
)

func TestFiguresAreShortAndNeverHideSomething(t *testing.T) {
	f := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	}
	for v, want := range map[float64]string{0: "0", 0.01: "<0.1", 0.5: "0.5", 14.4: "14.4", 15: "15", 99.96: "100", 862: "862", 999.6: "1.0k",
		1000: "1.0k", 12345: "12.3k", 999499: "999k", 999999: "1.0M", 4.1e6: "4.1M", 1e30: ">999E", -1: "0"} {
		f(Short(v), want)
	}
	f(Short(math.NaN()), "0")
	for v, want := range map[float64]string{0: "0%", 0.0001: "<0.1%", 0.2618: "26.2%", 0.9999: "99.9%", 1: "100%", 1.5: "100%"} {
		f(ShortPercent(v), want)
	}
	f(Bounds(0.259, 0.265), "25.9-26.5%")
	f(Bounds(0, 1), "0.0-100%")
	for d, want := range map[time.Duration]string{-time.Second: "0s", 59 * time.Second: "59s", 90 * time.Second: "1m", 99 * time.Hour: "99h",
		100 * time.Hour: "4d", 20000 * time.Hour: "833d", math.MaxInt64: ">2y"} {
		f(Age(d), want)
	}
	f((&Key{}).ReadsWrites(), "-")
	f((&Key{Reads: 1}).ReadsWrites(), "100/0")
	f((&Key{Reads: 99999, Writes: 1}).ReadsWrites(), "99/1")
	f((&Key{Reads: 1, Writes: 99999}).ReadsWrites(), "1/99")
	f((&Key{Writes: math.MaxUint32, Reads: 3}).ReadsWrites(), "1/99")
}

func TestSecondsAreThoseOfTheWindowThatWereSeen(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	f := func(from time.Time, window, want, covered float64) {
		t.Helper()
		r := &Report{From: from, To: at, WindowSeconds: window}
		if got := r.Seconds(); got != want {
			t.Errorf("got %v; want %v", got, want)
		}
		if got := r.Covered(); got != covered {
			t.Errorf("covered: got %v; want %v", got, covered)
		}
	}
	f(at.Add(-time.Minute), 60, 60, 60)
	f(at.Add(-59*time.Second), 60, 59, 60) // 59 s that are over, and the beginning of one
	f(at.Add(-59250*time.Millisecond), 60, 59.25, 60)
	f(at.Add(-58900*time.Millisecond), 60, 58.9, 59)
	f(at.Add(-4750*time.Millisecond), 5, 4.75, 5)
	f(at.Add(-7*time.Second), 60, 7, 8)
	f(at.Add(-time.Hour), 60, 60, 60)
	f(at.Add(time.Second), 60, 60, 60)
	f(at, 0, 0.001, 1)
}

func TestCSVWriterWritesOneHeader(t *testing.T) {
	var b bytes.Buffer
	c := NewCSVWriter(&b)
	r := sample()
	r.To = time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC)
	for range 2 {
		if err := c.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[0], "time,key,port,") || strings.Contains(strings.Join(lines[1:], "\n"), "time,") {
		t.Fatalf("got\n%s\nwant one header and four rows", b.String())
	}
	if want := `2026-01-02T03:05:00Z,a\x1b[31m,6379,hot,0.75,`; !strings.HasPrefix(lines[1], want) {
		t.Errorf("got %s; want %s…", lines[1], want)
	}
}

func TestTheTopClientHasAPartOnlyWhereItSaysSomething(t *testing.T) {
	f := func(clients uint64, share float64, want string) {
		t.Helper()
		k := Key{Clients: clients, TopClient: &TopClient{"10.0.0.7", share}}
		if got := k.TopClientText(); got != want {
			t.Errorf("%d clients, %v: got %q; want %q", clients, share, got, want)
		}
	}
	f(1, 1, "10.0.0.7 100%")
	f(3, .4, "10.0.0.7 40%")
	f(7, 1./7, "10.0.0.7 14%") // all alike
	f(12, .013, "10.0.0.7")    // of twelve that are alike, one has 8 %
	f(12, .08, "10.0.0.7")
	f(12, .09, "10.0.0.7 9%")
	f(5000, .009, "10.0.0.7") // 45 times the others, but 0 % is no news
	f(5000, .01, "10.0.0.7 1%")
	if got := (&Key{}).TopClientText(); got != "-" {
		t.Errorf("no client: got %q", got)
	}
}

func TestWhatIsNotWatchedIsNotZero(t *testing.T) {
	k := Key{Key: "a", Accesses: 7, Reads: 7}
	for _, c := range Columns() {
		switch c.Name {
		case "reads", "writes", "request_bytes", "reply_bytes", "clients", "top_client":
			if got := c.Text(&k); got != "-" {
				t.Errorf("%s: got %q", c.Name, got)
			}
		}
		if got := c.Value(&k); c.Name == "clients" && got != "0" || c.Name == "reads" && got != "7" {
			t.Errorf("%s for programs: got %q", c.Name, got)
		}
	}
	if got := k.ReadsWrites(); got != "-" {
		t.Errorf("reads and writes: got %q", got)
	}
}
