package topk

// Key bytes are kept only for keys that may be reported: a Zipf stream of 10^8
// keys has a few hundred of them.
const (
	keySlots  = 640
	slotBytes = 128 // longer keys are rare; their whole text needs a long slot
	longSlots = 16
	// keySpare slots are kept free for keys that are still rising.
	keySpare = 160
)

// keyStore holds the bytes of reported keys in fixed slots.
type keyStore struct {
	bytes [keySlots][slotBytes]byte
	long  [longSlots][MaxKeyBytes]byte
	full  [keySlots]uint32 // full key length on the wire
	n     [keySlots]uint16 // bytes known
	longs [keySlots]uint8  // long slot + 1
	owner [keySlots]uint16 // entry + 1, 0 = free
	free  []uint16
	spare []uint8 // free long slots
	bar   uint32  // own count an entry needs before it gets a slot
}

func (k *keyStore) init() {
	k.free = make([]uint16, 0, keySlots)
	for i := keySlots - 1; i >= 0; i-- {
		k.free = append(k.free, uint16(i))
	}
	k.spare = make([]uint8, 0, longSlots)
	for i := longSlots - 1; i >= 0; i-- {
		k.spare = append(k.spare, uint8(i))
	}
}

// set stores the key of entry e, in the slot it has or a free one. It reports
// whether the key is stored.
func (k *keyStore) set(m *meta, e int, key []byte, keyLen int64) bool {
	if m.key == 0 {
		if len(k.free) == 0 {
			return false
		}
		s := k.free[len(k.free)-1]
		k.free = k.free[:len(k.free)-1]
		k.owner[s] = uint16(e) + 1
		m.key = s + 1
	}
	s := m.key - 1
	k.fill(int(s), key, keyLen)
	m.flags |= flagKey
	return true
}

func (k *keyStore) fill(s int, key []byte, keyLen int64) {
	if len(key) > MaxKeyBytes {
		key = key[:MaxKeyBytes]
	}
	k.full[s] = uint32(min(max(keyLen, int64(len(key))), 1<<32-1))
	if len(key) > slotBytes && k.longs[s] == 0 && len(k.spare) > 0 {
		k.longs[s] = k.spare[len(k.spare)-1] + 1
		k.spare = k.spare[:len(k.spare)-1]
	}
	if len(key) > slotBytes && k.longs[s] != 0 {
		k.n[s] = uint16(copy(k.long[k.longs[s]-1][:], key))
		return
	}
	k.dropLong(s)
	k.n[s] = uint16(copy(k.bytes[s][:], key))
}

// dropLong gives up the long slot of s; the first slotBytes stay known.
func (k *keyStore) dropLong(s int) {
	l := k.longs[s]
	if l == 0 {
		return
	}
	k.n[s] = uint16(copy(k.bytes[s][:], k.long[l-1][:k.n[s]]))
	k.longs[s] = 0
	k.spare = append(k.spare, l-1)
}

func (k *keyStore) release(m *meta) {
	s := int(m.key) - 1
	k.dropLong(s)
	k.owner[s] = 0
	k.free = append(k.free, uint16(s))
	m.key = 0
	m.flags &^= flagKey
}

// get returns the known bytes of the key, owned by the store, and its length.
func (k *keyStore) get(m *meta) ([]byte, int64) {
	s := int(m.key) - 1
	b := k.bytes[s][:]
	if l := k.longs[s]; l != 0 {
		b = k.long[l-1][:]
	}
	return b[:k.n[s]], int64(k.full[s])
}

// reclaim frees the slots of the smallest keys when few are left, and sets the
// bar so that new ones go to larger keys. Work is bounded by keySlots.
func (t *table) reclaim() {
	k := &t.keys
	k.bar = 0
	t.reclaimLong()
	if len(k.free) >= keySpare {
		return
	}
	var h rankHistogram
	for s := range k.owner {
		if o := k.owner[s]; o != 0 {
			h.add(t.keyRank(int(o) - 1))
		}
	}
	cut := h.cut(keySlots - keySpare)
	for s := range k.owner {
		o := int(k.owner[s]) - 1
		if o < 0 || t.meta[o].detail != 0 {
			continue
		}
		if r := t.keyRank(o); r < cut {
			k.release(&t.meta[o])
		}
	}
	k.bar = cut
}

// keyRank is the own count of the entry if it has a key stored.
func (t *table) keyRank(e int) uint32 {
	if t.meta[e].flags&flagKey == 0 {
		return 0
	}
	return t.own(e)
}

// reclaimLong keeps one long slot free for a rising long key.
func (t *table) reclaimLong() {
	k := &t.keys
	if len(k.spare) > 0 {
		return
	}
	least, at := ^uint32(0), -1
	for s := range k.longs {
		o := int(k.owner[s]) - 1
		if k.longs[s] == 0 || o < 0 {
			continue
		}
		if r := t.keyRank(o); r < least {
			least, at = r, s
		}
	}
	if at >= 0 {
		k.dropLong(at)
	}
}
