package topk

// keyRef names key text in an arena: chunk, offset and length.
type keyRef struct {
	at  uint32 // offset in units of arenaUnit, over all chunks
	len uint16
	cap uint8 // capacity in units of arenaUnit; 0 = no text
}

const (
	arenaUnit       = 16 // a class of sizes is a multiple of this
	arenaChunk      = 1 << 20
	arenaChunkUnits = arenaChunk / arenaUnit
	arenaClasses    = MaxKeyBytes/arenaUnit + 1
)

// arena holds key text of a Counter in chunks that never move. Freed text is
// used again for keys of the same size class.
type arena struct {
	chunks [][]byte
	used   uint32 // units used of all chunks
	free   [arenaClasses][]keyRef
}

func arenaClass(n int) int { return max((min(n, MaxKeyBytes)+arenaUnit-1)/arenaUnit, 1) }

// full reports whether a key of n bytes has no room and must not be added.
func (a *arena) full(n int) bool {
	return len(a.free[arenaClass(n)]) == 0 && int(a.used)*arenaUnit+2*MaxKeyBytes > maxKeyArena
}

// put stores key text. When there is no room of the right size, the next
// smaller free text takes a prefix.
func (a *arena) put(key []byte) keyRef {
	if len(key) > MaxKeyBytes {
		key = key[:MaxKeyBytes]
	}
	class := arenaClass(len(key))
	ref, ok := a.pop(class)
	if !ok && !a.full(len(key)) {
		ref, ok = a.bump(class), true
	}
	for c := class + 1; !ok && c < arenaClasses; c++ {
		ref, ok = a.pop(c)
	}
	for c := class - 1; !ok && c > 0; c-- {
		ref, ok = a.pop(c)
	}
	if !ok {
		return keyRef{}
	}
	ref.len = uint16(copy(a.slot(ref), key))
	return ref
}

func (a *arena) pop(class int) (keyRef, bool) {
	f := a.free[class]
	if len(f) == 0 {
		return keyRef{}, false
	}
	a.free[class] = f[:len(f)-1]
	return f[len(f)-1], true
}

// bump takes fresh room; a class never crosses a chunk.
func (a *arena) bump(class int) keyRef {
	left := uint32(len(a.chunks))*arenaChunkUnits - a.used
	if uint32(class) > left {
		a.used += left
		a.chunks = append(a.chunks, make([]byte, arenaChunk))
	}
	ref := keyRef{at: a.used, cap: uint8(class)}
	a.used += uint32(class)
	return ref
}

func (a *arena) release(r keyRef) {
	if r.cap != 0 {
		a.free[r.cap] = append(a.free[r.cap], r)
	}
}

func (a *arena) slot(r keyRef) []byte {
	off := r.at % arenaChunkUnits * arenaUnit
	return a.chunks[r.at/arenaChunkUnits][off : off+uint32(r.cap)*arenaUnit]
}

func (a *arena) get(r keyRef) []byte {
	if r.cap == 0 {
		return nil
	}
	return a.slot(r)[:r.len]
}
