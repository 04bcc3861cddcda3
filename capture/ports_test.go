package capture

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestParsePorts(t *testing.T) {
	for _, tt := range []struct {
		in, canonical string
		n             int
	}{
		{"6379", "6379", 1},
		{"6379,7000-7005", "6379,7000-7005", 7},
		{" 7001 , 7000, 7000-7002 ", "7000-7002", 3},
		{"65535,1", "1,65535", 2},
		{"1-1024", "1-1024", 1024},
	} {
		set, err := ParsePorts(tt.in)
		if err != nil {
			t.Errorf("%q: %v", tt.in, err)
			continue
		}
		if set.String() != tt.canonical || set.Len() != tt.n || !slices.IsSorted(set.Ports()) {
			t.Errorf("%q: %s, %d ports", tt.in, set, set.Len())
		}
		for i, port := range set.Ports() {
			if !set.Has(port) || set.Index(port) != i {
				t.Errorf("%q: port %d has index %d, want %d", tt.in, port, set.Index(port), i)
			}
		}
	}
}

func TestParsePortsErrors(t *testing.T) {
	for _, in := range []string{"", ",", "0", "65536", "-1", "7005-7000", "redis", "1-65535", "1-1025", "6379,", "7000-", "-", "6379-7000-8000"} {
		set, err := ParsePorts(in)
		if err == nil {
			t.Errorf("%q: accepted as %s", in, set)
		} else if !strings.HasPrefix(err.Error(), fmt.Sprintf("parse ports %q", in)) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestPortSetHasAndIndex(t *testing.T) {
	set, _ := ParsePorts("63,64,65,127,128,6379")
	for port := range 1 << 16 {
		want := slices.Index(set.Ports(), uint16(port))
		if set.Index(uint16(port)) != want || set.Has(uint16(port)) != (want >= 0) {
			t.Fatalf("port %d: index %d, want %d", port, set.Index(uint16(port)), want)
		}
	}
	var none *PortSet
	if none.Has(6379) || none.Index(6379) != -1 || none.Len() != 0 || none.String() != "" {
		t.Error("the nil set is not empty")
	}
}

func TestPortRangesJoinNarrowGapsFirst(t *testing.T) {
	got := portRanges([]uint16{10, 11, 13, 100, 102, 200}, 3)
	want := []portRange{{10, 13}, {100, 102}, {200, 200}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDirectionNames(t *testing.T) {
	for _, d := range []Direction{In, Out, Both} {
		if got, err := ParseDirection(d.String()); got != d || err != nil {
			t.Errorf("%v: %v, %v", d, got, err)
		}
	}
	if _, err := ParseDirection("sideways"); err == nil {
		t.Error("sideways is accepted")
	}
}

func TestEndReasonNames(t *testing.T) {
	seen := map[string]bool{"invalid": true}
	for r := range NumEndReasons {
		if seen[r.String()] {
			t.Errorf("reason %d is called %q", r, r)
		}
		seen[r.String()] = true
	}
}
