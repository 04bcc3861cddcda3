package capture

import (
	"encoding/binary"
	"time"
)

// Meta says where and when a Stream call happens. It is valid during the call.
type Meta struct {
	// T is the time of the packet or tick that caused the call, so that times
	// never run backwards for bytes that waited in a buffer.
	T int64
	// Client is the address of the client. In End with the reasons Idle,
	// Evicted and Shutdown it is zero for a flow that had nothing buffered: the
	// flow table keeps no addresses.
	Client     [16]byte
	ClientPort uint16
	Port       uint16 // server port
	// Turn, in Data: these bytes open a turn, that is, the client had received
	// what the server sent after everything the client had sent before. With
	// server packets in the capture it also means that the server had
	// acknowledged exactly the bytes before these. False when not known.
	Turn bool
	// ServerBytes, in Data: how far the client's acknowledgement number moved
	// since its previous data, the bytes of reply that it received; 0 when not
	// known.
	ServerBytes uint32
}

// EndReason says why a flow ended.
type EndReason uint8

// Reasons of End.
const (
	EndFIN      EndReason = iota // the client closed
	EndRST                       // either side reset
	EndReused                    // a new connection on the same tuple
	EndIdle                      // nothing came for the idle timeout
	EndEvicted                   // the flow table was full and this flow was silent longest
	EndShutdown                  // Flush
	NumEndReasons
)

var endReasonNames = [NumEndReasons]string{"fin", "rst", "reused", "idle", "evicted", "shutdown"}

// String returns the reason as a metric label value.
func (r EndReason) String() string {
	if r < NumEndReasons {
		return endReasonNames[r]
	}
	return "invalid"
}

// Stream consumes the flows of an Assembler. For each flow the calls come in
// this order: Open, then Data, Gap and Reply in any mix, then End. Data and Gap
// follow each other without hole or overlap: the bytes of Data and the lengths
// of Gap add up to the client's byte stream from where it was first seen.
//
// f is the consumer's state of the flow, zero at Open. The pointer, m and b are
// valid during the call only. A Stream must not call the Assembler except
// WantReplies.
type Stream[S any] interface {
	// Open starts a flow. syn: the connection was seen from its start, so the
	// first client byte is the first byte of the connection.
	Open(f *S, m *Meta, syn bool)
	// Data brings client bytes in order.
	Data(f *S, m *Meta, b []byte)
	// Gap says that n client bytes were not captured: lost, or cut by the snap
	// length. What follows continues behind them. n < 0 would mean an unknown
	// distance; the Assembler reports End and Open instead.
	Gap(f *S, m *Meta, n int64)
	// Reply brings server bytes in the order seen, without duplicates. wire is
	// their length on the wire, more than len(b) when the snap length cut them.
	// When server bytes are missing, b is nil and wire their number, 0 when it
	// is not known. Returning false stops the calls for this flow.
	Reply(f *S, m *Meta, b []byte, wire int) bool
	// End ends a flow; f is forgotten afterwards.
	End(f *S, m *Meta, why EndReason)
}

// AssemblerConfig configures an Assembler; zero fields mean the default.
type AssemblerConfig struct {
	Ports       *PortSet      // server ports; nil is 6379
	MaxFlows    int           // DefaultMaxFlows
	MaxBuffered int           // bytes of out-of-order data in all flows, DefaultMaxBuffered
	IdleTimeout time.Duration // DefaultIdleTimeout
	Seed        uint64        // of the flow hash; 0 is random, set it only in tests
}

// DefaultIdleTimeout is how long a silent flow is kept. Pools keep connections
// open for minutes without traffic, and a flow that is forgotten too early has
// to prove itself again, so it is long; MaxFlows bounds the memory.
const DefaultIdleTimeout = 30 * time.Minute

const (
	// seqWindow is how far a segment may be from the expected byte and still
	// belong to the connection. Linux grows windows to 6 MiB by default; a
	// stray sequence number falls inside once in 128 times.
	seqWindow = 16 << 20
	// reuseSlack is how much data a connection may have sent when a late
	// duplicate of its SYN arrives that is no longer remembered.
	reuseSlack = 64 << 10
)

// When a hole is given up (rules in doc.go).
const (
	ackedPackets   = 8 // the server has the bytes: the capture lost them
	ackedWait      = int64(50 * time.Millisecond)
	oneWayPackets  = 64 // no server packets: nothing proves anything
	oneWayWait     = int64(200 * time.Millisecond)
	unackedWait    = int64(2 * time.Second) // the server lacks them too: the client will send them again
	holeCheckEvery = int64(10 * time.Millisecond)
)

// AssemblerStats are plain counters, written by the goroutine of the Assembler.
type AssemblerStats struct {
	Flows          int // open flows
	Entries        int // flow table entries in use, closed flows included
	Segments       uint64
	Syns           uint64 // SYNs of clients, duplicates included
	OtherPort      uint64 // segments of no configured port
	Oversized      uint64 // segments longer than any frame, dropped
	Opened         uint64 // flows
	OpenedSyn      uint64 // of these, seen from their start
	Ended          [NumEndReasons]uint64
	ClientBytes    uint64 // delivered by Data
	Gaps           uint64 // holes given up
	GapBytes       uint64
	Cuts           uint64 // segments cut by the snap length
	CutBytes       uint64
	Duplicates     uint64 // segments that brought nothing new
	DuplicateBytes uint64 // bytes that came again
	OutOfOrder     uint64 // segments that came early
	Buffered       int    // pages in use now
	BufferedBytes  int    // the memory of these pages
	LimitGaps      uint64 // of Gaps, given up because a buffer limit was reached
	IgnoredResets  uint64 // RSTs outside the window
}

// Assembler puts the client bytes of many connections in order and tells a
// Stream about them. It belongs to one goroutine. See the package documentation
// for what it does with loss, reordering, duplicates and limits.
type Assembler[S any] struct {
	ports     *PortSet
	stream    Stream[S]
	keys      hashKeys
	table     flowTable[S]
	embryos   embryoTable
	buffer    reorderBuffer
	idleUnits int16
	now       int64
	checked   int64    // when the holes were last looked through
	cur       *flow[S] // the flow of the callback that is running
	meta      Meta
	stats     AssemblerStats
}

// NewAssembler returns an Assembler that reports to stream.
func NewAssembler[S any](cfg AssemblerConfig, stream Stream[S]) *Assembler[S] {
	return newAssembler(cfg, stream, embryoSets)
}

func newAssembler[S any](cfg AssemblerConfig, stream Stream[S], embryoSets int) *Assembler[S] {
	a := &Assembler[S]{ports: cfg.Ports, stream: stream, keys: newHashKeys(cfg.Seed)}
	if a.ports == nil {
		a.ports, _ = ParsePorts("6379")
	}
	flows := cfg.MaxFlows
	if flows <= 0 {
		flows = DefaultMaxFlows
	}
	a.table.init(min(flows, maxFlows))
	buffered := cfg.MaxBuffered
	if buffered <= 0 {
		buffered = DefaultMaxBuffered
	}
	a.buffer.maxPages = min(max(buffered/pageBytes, 1), maxPages)
	idle := cfg.IdleTimeout
	if idle <= 0 {
		idle = DefaultIdleTimeout
	}
	const longestIdle = 8 * time.Hour // flow.seen wraps later
	a.idleUnits = int16(max(min(idle, longestIdle)>>flowClock, 1))
	a.embryos.init(embryoSets)
	return a
}

// Stats returns the counters; the pointer stays valid, reading it belongs to
// the goroutine of the Assembler.
func (a *Assembler[S]) Stats() *AssemblerStats {
	a.stats.Entries = a.table.used
	a.stats.Buffered = a.buffer.inUse
	a.stats.BufferedBytes = a.buffer.inUse * pageBytes
	return &a.stats
}

// WantReplies makes the Assembler call Reply again for the flow whose callback
// is running, after Reply had returned false.
func (a *Assembler[S]) WantReplies() {
	if a.cur != nil && a.cur.flags&flowReplies == 0 {
		a.cur.flags = a.cur.flags&^flowServerSeq | flowReplies
	}
}

// Add takes one segment. It calls the Stream with whatever became deliverable
// and keeps nothing of s. A segment of a known flow that comes in order is
// handled without allocation.
func (a *Assembler[S]) Add(s *Segment) {
	a.now = s.T
	a.stats.Segments++
	wire := max(s.WireLen, len(s.Payload))
	if wire > maxWire {
		a.stats.Oversized++
		return
	}
	toServer, fromServer := a.ports.Has(s.DstPort), a.ports.Has(s.SrcPort)
	if toServer && fromServer {
		toServer = a.isRequest(s)
	}
	switch {
	case toServer:
		a.at(s.T, &s.Src, s.SrcPort, s.DstPort)
		a.client(s, uint32(wire), a.keys.sum(&s.Src, &s.Dst, s.SrcPort, s.DstPort))
	case fromServer:
		a.at(s.T, &s.Dst, s.DstPort, s.SrcPort)
		a.server(s, uint32(wire), a.keys.sum(&s.Dst, &s.Src, s.DstPort, s.SrcPort))
	default:
		a.stats.OtherPort++
	}
	if a.buffer.first != 0 {
		a.checkHoles()
	}
}

// at sets the meta data that all calls for one packet share. The address goes
// by halves: it was written by halves a moment ago, and a load across two stores
// that are still under way would stall.
func (a *Assembler[S]) at(t int64, client *[16]byte, clientPort, port uint16) {
	m := &a.meta
	m.T, m.ClientPort, m.Port = t, clientPort, port
	binary.LittleEndian.PutUint64(m.Client[:8], binary.LittleEndian.Uint64(client[:8]))
	binary.LittleEndian.PutUint64(m.Client[8:], binary.LittleEndian.Uint64(client[8:]))
}

// Tick lets time pass: holes are given up and idle flows expire. t is in
// nanoseconds since the epoch. Call it a few times a second of packet time.
func (a *Assembler[S]) Tick(t int64) {
	a.now = t
	if a.buffer.first != 0 {
		a.checked = 0
		a.checkHoles()
	}
	a.sweep(max(256, a.table.made/64))
}

// Flush is the end of input: everything that waits is delivered, with Gap for
// what is missing, and all flows end. The Assembler can be used again.
func (a *Assembler[S]) Flush(t int64) {
	a.now = t
	for slot := range a.table.made {
		f := a.table.at(slot)
		if f.flags&flowUsed == 0 {
			continue
		}
		if f.flags&flowClosed == 0 {
			a.meta = Meta{T: t, Port: f.port}
			a.end(f, EndShutdown)
		}
		a.table.remove(slot)
	}
}

// isRequest finds the direction when both ports are server ports: by the SYN,
// else by the flow that exists, else by what the payload looks like.
func (a *Assembler[S]) isRequest(s *Segment) bool {
	if s.Flags&FlagSYN != 0 {
		return s.Flags&FlagACK == 0
	}
	there := a.keys.sum(&s.Src, &s.Dst, s.SrcPort, s.DstPort)
	back := a.keys.sum(&s.Dst, &s.Src, s.DstPort, s.SrcPort)
	if f, _ := a.table.find(there); f != nil {
		return true
	}
	if f, _ := a.table.find(back); f != nil {
		return false
	}
	if a.embryos.find(there) != nil {
		return true
	}
	if a.embryos.find(back) != nil {
		return false
	}
	return !looksLikeReply(s.Payload)
}

// looksLikeReply reports whether b begins like a reply. Requests begin with *
// or, inline, with a letter; an array reply begins with * too and counts as a
// request here, which the decoder then refuses.
func looksLikeReply(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	switch b[0] {
	case '+', '-', ':', '$', '_', '#', ',', '(', '!', '=', '%', '~', '>', '|':
		return true
	}
	return false
}
