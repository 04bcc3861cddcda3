package main

import (
	"os"
	"testing"
)

// TestMetricsFileIsCurrent: METRICS.md is what the collector says today.
func TestMetricsFileIsCurrent(t *testing.T) {
	got, err := os.ReadFile("../../METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != document() {
		t.Error("METRICS.md is out of date: run make generate")
	}
}
