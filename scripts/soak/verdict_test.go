package main

import (
	"strings"
	"testing"
)

func TestFlat(t *testing.T) {
	steady := make([]float64, 100)
	growing := make([]float64, 100)
	burst := make([]float64, 100)
	for i := range steady {
		steady[i] = 50 + float64(i%3)
		growing[i] = 50 + float64(i)/10
		burst[i] = 50
	}
	burst[50], burst[99] = 500, 500
	for _, tt := range []struct {
		name   string
		values []float64
		more   float64
		good   bool
	}{
		{"steady", steady, 2, true},
		{"growing by a tenth a sample", growing, 4, false},
		{"growing within the bound", growing, 8, true},
		{"single high values", burst, 1, true},
		{"less than before", []float64{9, 9, 9, 9, 1, 1, 1, 1}, 0, true},
		{"too few", []float64{1, 2, 3}, 100, false},
	} {
		var v verdict
		v.flat("x", tt.values, tt.more)
		if got := len(v.faults) == 0; got != tt.good {
			t.Errorf("%s: good %v, want %v: %v", tt.name, got, tt.good, v.faults)
		}
	}
}

func TestLog(t *testing.T) {
	var l watchLog
	l.Write([]byte("time=2026 level=INFO msg=\"key is hot\" key=hot:1 port=6379\ntime=2026 level=ERR"))
	l.Write([]byte("OR msg=\"cannot reload the configuration\"\n"))
	if !l.reported("hot:1") || l.reported("hot:2") {
		t.Errorf("reported: %v", l.hot)
	}
	if _, bad := l.summary(); len(bad) != 0 {
		t.Errorf("unexpected: %v", bad)
	}
	l.Write([]byte("time=2026 level=ERROR msg=\"something else\"\ntime=2026 level=ERROR msg=\"survived a bug; please report it\"\ngoroutine 1 [running]:\n"))
	if levels, bad := l.summary(); len(bad) != 3 || levels["ERROR"] != 3 {
		t.Errorf("levels %v, unexpected %s", levels, strings.Join(bad, "; "))
	}
}
