package pipeline

import (
	"testing"
	"unsafe"
)

// TestConnFitsItsFlow: with 24 bytes of ours a flow takes 56, and with the index
// at most 64 are promised.
func TestConnFitsItsFlow(t *testing.T) {
	if n := unsafe.Sizeof(conn{}); n > 24 {
		t.Errorf("the state of a connection takes %d bytes; want 24 at most", n)
	}
}
