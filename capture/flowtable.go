package capture

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// flow is one TCP connection: 32 bytes of ours and the consumer's S. It holds
// no pointer, so the garbage collector never looks at the table, and no
// address: a 64-bit keyed hash of the tuple stands for it (see hashKeys).
type flow[S any] struct {
	hash  uint64
	next  uint32    // next client byte; in a free slot 1 + the next free slot
	ack   uint32    // acknowledgement number of the client's newest data
	snext uint32    // next server byte, when flowServerSeq
	acked uint32    // highest acknowledgement number of the server, when flowTwoWay
	seen  uint16    // when its last packet came, in flowClock units
	port  uint16    // server port
	hole  uint16    // 1 + index of its hole, 0 when nothing is buffered
	flags flowFlags //
	state S
}

type flowFlags uint16

const (
	flowUsed      flowFlags = 1 << iota // the slot holds a flow
	flowClosed                          // End was called; the entry lingers to absorb late duplicates
	flowAnchored                        // next is a fact; without it next is what the server acknowledged
	flowStart                           // the start was seen and no data has come yet
	flowAckKnown                        // ack is valid
	flowProven                          // data came more than once: not one packet of a flood
	flowGapped                          // bytes before next were lost: the ack number alone proves no turn
	flowTwoWay                          // server packets are seen, acked is valid
	flowSpoke                           // the server sent data together with acked
	flowReplies                         // the consumer wants Reply
	flowServerSeq                       // snext is valid
)

const (
	// DefaultMaxFlows bounds the flow table: 262,144 connections are more than
	// Redis accepts by far (maxclients is 10,000 by default) and take 16 MiB.
	DefaultMaxFlows = 1 << 18
	// maxFlows is the most that the index can address.
	maxFlows = 1<<slotBits - 1

	slotBits   = 20 // of an index entry; the other 12 are a tag
	chunkFlows = 1 << chunkBits
	chunkBits  = 10

	// flowClock is the unit of flow.seen: 2^30 ns, about a second. 16 bits of
	// it wrap after 19 hours; ages are compared as signed.
	flowClock = 30
	// lingerUnits is how long a closed flow absorbs late duplicates of its
	// last segments.
	lingerUnits = 2
	// evictSample is how many flows are compared when the table is full; the
	// least worth keeping goes. Sixteen random draws find one of the oldest
	// tenth four times in five.
	evictSample = 16
	// sweepPerOpen is how many slots each new flow inspects for the idle and
	// the closed, so that the table is cleaned at the pace it fills.
	sweepPerOpen = 4
)

// hashKeys are the random keys of the tuple hash. Tuples are chosen by whoever
// sends packets, and the hash stands for the tuple, so it must not be
// predictable from outside; multiply-and-fold under unknown keys is not.
type hashKeys [6]uint64

func newHashKeys(seed uint64) hashKeys {
	var keys hashKeys
	next := rand.Uint64 // seeded by the runtime from the system's entropy
	if seed != 0 {
		next = rand.New(rand.NewPCG(seed, seed)).Uint64
	}
	for i := range keys {
		keys[i] = next()
	}
	return keys
}

func (k *hashKeys) sum(client, server *[16]byte, clientPort, serverPort uint16) uint64 {
	c := fold(binary.LittleEndian.Uint64(client[:8])^k[0], binary.LittleEndian.Uint64(client[8:])^k[1])
	s := fold(binary.LittleEndian.Uint64(server[:8])^k[2], binary.LittleEndian.Uint64(server[8:])^k[3])
	ports := uint64(clientPort)<<16 | uint64(serverPort)
	return fold(c^ports^k[4], s^k[5])
}

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// flowTable stores flows in chunks that never move and finds them through an
// open-addressing index of 4 bytes an entry, so growing copies no flow and a
// flow costs 56 bytes (for S of 24) plus 5 to 10 of index.
type flowTable[S any] struct {
	index  []uint32 // tag<<slotBits | slot+1, 0 is empty; linear probing
	shift  uint8    // home position is hash >> shift
	chunks []*[chunkFlows]flow[S]
	free   uint32 // 1 + first free slot
	made   int    // slots that exist
	used   int    // slots in use, closed ones included
	max    int
	hand   int    // next slot that the sweep looks at
	random uint64 // state of randomSlot
}

func (t *flowTable[S]) init(limit int) {
	const firstIndexBits = 10
	t.index = make([]uint32, 1<<firstIndexBits)
	t.shift = 64 - firstIndexBits
	t.max = limit
}

func (t *flowTable[S]) at(slot int) *flow[S] {
	return &t.chunks[slot>>chunkBits][slot&(chunkFlows-1)]
}

func indexEntry(hash uint64, slot int) uint32 {
	return uint32(hash)<<slotBits | uint32(slot+1)
}

// find returns the flow with this hash and its slot, or nil.
func (t *flowTable[S]) find(hash uint64) (*flow[S], int) {
	mask := len(t.index) - 1
	tag := uint32(hash) << slotBits
	for at := int(hash >> t.shift); ; at++ {
		entry := t.index[at&mask]
		if entry == 0 {
			return nil, 0
		}
		if entry&^(1<<slotBits-1) == tag {
			slot := int(entry&(1<<slotBits-1)) - 1
			if f := t.at(slot); f.hash == hash {
				return f, slot
			}
		}
	}
}

func (t *flowTable[S]) full() bool { return t.used >= t.max }

// insert makes a zeroed flow. The table must not be full.
func (t *flowTable[S]) insert(hash uint64) (*flow[S], int) {
	if (t.used+1)*16 > len(t.index)*13 { // keeps probes short up to 81 % load
		t.growIndex()
	}
	var slot int
	if t.free != 0 {
		slot = int(t.free) - 1
		t.free = t.at(slot).next
	} else {
		slot = t.made
		if slot>>chunkBits == len(t.chunks) {
			t.chunks = append(t.chunks, new([chunkFlows]flow[S]))
		}
		t.made++
	}
	f := t.at(slot)
	*f = flow[S]{hash: hash, flags: flowUsed}
	t.used++
	t.link(hash, slot)
	return f, slot
}

func (t *flowTable[S]) link(hash uint64, slot int) {
	mask := len(t.index) - 1
	at := int(hash >> t.shift)
	for t.index[at&mask] != 0 {
		at++
	}
	t.index[at&mask] = indexEntry(hash, slot)
}

// growIndex doubles the index. Flows stay where they are; 200,000 of them are
// linked anew in about 2 ms.
func (t *flowTable[S]) growIndex() {
	t.index = make([]uint32, 2*len(t.index))
	t.shift--
	for slot := range t.made {
		if f := t.at(slot); f.flags&flowUsed != 0 {
			t.link(f.hash, slot)
		}
	}
}

// remove frees a slot. The entries behind it in the index move up, so that no
// tombstone is needed.
func (t *flowTable[S]) remove(slot int) {
	f := t.at(slot)
	mask := len(t.index) - 1
	at := int(f.hash>>t.shift) & mask
	for want := indexEntry(f.hash, slot); t.index[at] != want; {
		at = (at + 1) & mask
	}
	for next := (at + 1) & mask; t.index[next] != 0; next = (next + 1) & mask {
		home := int(t.at(int(t.index[next]&(1<<slotBits-1))-1).hash >> t.shift)
		if (next-home)&mask >= (next-at)&mask { // may stand at the hole without hiding
			t.index[at] = t.index[next]
			at = next
		}
	}
	t.index[at] = 0
	*f = flow[S]{next: t.free}
	t.free = uint32(slot + 1)
	t.used--
}

// advanceHand returns the next slot to inspect, going round.
func (t *flowTable[S]) advanceHand() int {
	if t.hand >= t.made {
		t.hand = 0
	}
	t.hand++
	return t.hand - 1
}

// randomSlot returns a slot that exists, used or not. Its sequence is fixed, so
// that a replayed file is handled the same every time.
func (t *flowTable[S]) randomSlot() int {
	t.random = t.random*6364136223846793005 + 1442695040888963407 // Knuth's MMIX generator
	hi, _ := bits.Mul64(t.random, uint64(t.made))
	return int(hi)
}
