package main

import "testing"

// TestTableIsUpToDate fails when the source or the generator was changed
// without running the generator.
func TestTableIsUpToDate(t *testing.T) {
	if err := run("../..", true); err != nil {
		t.Error(err)
	}
}
