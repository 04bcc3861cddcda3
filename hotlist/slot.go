package hotlist

import (
	"strconv"
	"strings"
)

const (
	// clusterSlots is fixed by the Redis Cluster specification.
	clusterSlots = 16384
	// copyMark marks the names of copies; keys that hold it are not copied again.
	copyMark = "#hs:"
	// maxNameTries bounds the search for a name on the wanted part of the
	// slots: with 64 parts all but one in 10^27 searches end within it.
	maxNameTries = 4096
)

// crcTable is for CRC-16 with polynomial 0x1021, as the cluster specification
// demands.
var crcTable = func() (t [256]uint16) {
	for i := range t {
		c := uint16(i) << 8
		for range 8 {
			if c&0x8000 != 0 {
				c = c<<1 ^ 0x1021
			} else {
				c <<= 1
			}
		}
		t[i] = c
	}
	return t
}()

// slotOf returns the cluster slot of a key.
func slotOf(key string) int {
	if from, to, ok := hashTag(key); ok {
		key = key[from:to]
	}
	crc := uint16(0)
	for i := range len(key) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^key[i]]
	}
	return int(crc) % clusterSlots
}

// hashTag returns where the part of the key is that alone decides the slot, if
// there is one: what is between the first { and the first } after it, unless
// that is nothing.
func hashTag(key string) (from, to int, ok bool) {
	open := strings.IndexByte(key, '{')
	if open < 0 {
		return 0, 0, false
	}
	n := strings.IndexByte(key[open+1:], '}')
	if n <= 0 {
		return 0, 0, false
	}
	return open + 1, open + 1 + n, true
}

// copyNames returns the names of n copies of key, the same on every instance.
// The i-th lies in the i-th of n equal parts of the slots, so that they spread
// over the nodes of a cluster however its slots are shared out. The name goes
// into the hash tag if there is one, because that alone decides the slot.
func copyNames(key string, n int) []string {
	head, tail := key, ""
	if _, to, ok := hashTag(key); ok {
		head, tail = key[:to], key[to:]
	}
	names := make([]string, n)
	for i := range names {
		for j := range maxNameTries {
			names[i] = head + copyMark + strconv.Itoa(i) + "." + strconv.Itoa(j) + tail
			if slotOf(names[i])*n/clusterSlots == i {
				break
			}
		}
	}
	return names
}
