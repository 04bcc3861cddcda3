package resp

import "testing"

// TestGenerationsDiffer: a reference to an earlier user of a slot names none,
// also when the lower half of the count has gone round.
func TestGenerationsDiffer(t *testing.T) {
	var p pool[int]
	seen := map[generation]bool{}
	var first ref
	for i := range 1<<16 + 10 {
		_, r := p.alloc(1)
		if seen[r.gen] {
			t.Fatalf("generation %v came again after %d", r.gen, i)
		}
		seen[r.gen] = true
		if i == 0 {
			first = r
		} else if p.get(first) != nil {
			t.Fatalf("the first reference is valid again after %d", i)
		}
		if p.release(r) == nil {
			t.Fatal("cannot release")
		}
	}
}

// TestPoolIsBoundedByItsReferences: no more slots are made than can be named.
func TestPoolIsBoundedByItsReferences(t *testing.T) {
	var p pool[byte]
	n := 0
	for {
		v, r := p.alloc(1 << 20)
		if v == nil {
			break
		}
		if n++; int(r.slot) != n {
			t.Fatalf("slot %d is named %d", n, r.slot)
		}
	}
	if n != maxSlots {
		t.Errorf("got %d slots, want %d", n, maxSlots)
	}
}
