package capture

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// flowState is a consumer state of the size that the decoder uses.
type flowState struct {
	id    uint64
	bytes int64
	_     uint64
}

// recorder writes down every call as one word or phrase.
type recorder struct {
	log        []string
	nextID     uint64
	wantReply  bool
	a          *Assembler[flowState]
	askReplies bool // ask for replies again on every Data
}

func (r *recorder) note(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

func (r *recorder) Open(f *flowState, m *Meta, syn bool) {
	if *f != (flowState{}) {
		r.note("DIRTY")
	}
	r.nextID++
	f.id = r.nextID
	r.note("open%d syn=%v", f.id, syn)
}

func (r *recorder) Data(f *flowState, m *Meta, b []byte) {
	turn := ""
	if m.Turn {
		turn = " turn"
	}
	if m.ServerBytes != 0 {
		turn += fmt.Sprintf(" +%d", m.ServerBytes)
	}
	r.note("data%d %s%s", f.id, b, turn)
	if r.askReplies {
		r.a.WantReplies()
	}
}

func (r *recorder) Gap(f *flowState, m *Meta, n int64) { r.note("gap%d %d", f.id, n) }

func (r *recorder) Reply(f *flowState, m *Meta, b []byte, wire int) bool {
	r.note("reply%d %s/%d", f.id, b, wire)
	return r.wantReply
}

func (r *recorder) End(f *flowState, m *Meta, why EndReason) { r.note("end%d %v", f.id, why) }

func (r *recorder) take() string {
	out := strings.Join(r.log, "; ")
	r.log = r.log[:0]
	return out
}

var (
	clientAddr = [16]byte{10: 0xff, 11: 0xff, 12: 10, 15: 7}
	serverAddr = [16]byte{10: 0xff, 11: 0xff, 12: 10, 15: 1}
)

const startT = int64(1_700_000_000_000_000_000)

// fromClient makes a client segment with the ACK flag.
func fromClient(seq, ack uint32, payload string, flags ...uint8) Segment {
	s := Segment{
		Src: clientAddr, Dst: serverAddr, SrcPort: 40000, DstPort: 6379,
		Seq: seq, Ack: ack, Flags: FlagACK, Payload: []byte(payload), WireLen: len(payload),
	}
	for _, flag := range flags {
		s.Flags |= flag
	}
	return s
}

// fromServer makes a server segment with the ACK flag.
func fromServer(seq, ack uint32, payload string, flags ...uint8) Segment {
	s := fromClient(seq, ack, payload, flags...)
	s.Src, s.Dst, s.SrcPort, s.DstPort = s.Dst, s.Src, s.DstPort, s.SrcPort
	return s
}

func syn(isn uint32) Segment {
	s := fromClient(isn, 0, "")
	s.Flags = FlagSYN
	return s
}

func synAck(isn, clientISN uint32) Segment { return fromServer(isn, clientISN+1, "", FlagSYN) }

// cutTo leaves n captured bytes of the payload.
func cutTo(s Segment, n int) Segment {
	s.Payload = s.Payload[:n]
	return s
}

// step is one packet, or a tick or flush, and the calls it must cause.
type step struct {
	seg  Segment
	want string
	wait time.Duration // before the packet
	tick bool          // Tick instead of a packet
	all  bool          // Flush instead of a packet
	copy int           // send the packet this often more
}

func runSteps(t *testing.T, a *Assembler[flowState], r *recorder, steps []step) {
	t.Helper()
	now := startT
	for i, st := range steps {
		now += int64(st.wait) + 1000
		switch {
		case st.tick:
			a.Tick(now)
		case st.all:
			a.Flush(now)
		default:
			for range st.copy + 1 {
				st.seg.T = now
				a.Add(&st.seg)
			}
		}
		if got := r.take(); got != st.want {
			t.Errorf("step %d:\n got  %s\n want %s", i, got, st.want)
		}
	}
}

func newRecorded(cfg AssemblerConfig) (*Assembler[flowState], *recorder) {
	r := &recorder{wantReply: true}
	cfg.Seed = 1
	r.a = NewAssembler[flowState](cfg, r)
	return r.a, r
}

func TestAssemblerSteps(t *testing.T) {
	tick := func(wait time.Duration, want string) step { return step{tick: true, wait: wait, want: want} }
	flush := func(want string) step { return step{all: true, want: want} }
	tests := []struct {
		name  string
		steps []step
	}{
		{"a connection from SYN to FIN, requests only", []step{
			{seg: syn(99)},
			{seg: fromClient(100, 500, "abc"), want: "open1 syn=true; data1 abc turn"},
			{seg: fromClient(103, 500, "de"), want: "data1 de"},
			{seg: fromClient(105, 510, "f"), want: "data1 f turn +10"},
			{seg: fromClient(106, 520, "", FlagFIN), want: "end1 fin"},
		}},
		{"FIN with the last data", []step{
			{seg: syn(99)},
			{seg: fromClient(100, 1, "abc", FlagFIN), want: "open1 syn=true; data1 abc turn; end1 fin"},
			{seg: fromClient(100, 1, "abc", FlagFIN)},
			{seg: fromClient(103, 1, "", FlagFIN)},
		}},
		{"data of a fast open SYN", []step{
			{seg: func() Segment { s := syn(99); s.Payload, s.WireLen = []byte("abc"), 3; return s }(),
				want: "open1 syn=true; data1 abc turn"},
			{seg: fromClient(103, 1, "d"), want: "data1 d +1"},
		}[:1]},
		{"start in the middle: the first segment defines the stream and is no turn", []step{
			{seg: fromClient(1000, 1, "abc"), want: "open1 syn=false; data1 abc"},
			{seg: fromClient(1003, 9, "d"), want: "data1 d turn +8"},
		}},
		{"start in the middle, reordered: what comes before the first seen byte is not delivered", []step{
			{seg: fromClient(1000, 1, "def"), want: "open1 syn=false; data1 def"},
			{seg: fromClient(997, 1, "abc")},
			{seg: fromClient(1003, 1, "ghi"), want: "data1 ghi"},
		}},
		{"SYN seen and the first data lost: the gap begins at ISN+1", []step{
			{seg: syn(99)},
			{seg: fromClient(110, 1, "abc"), want: "open1 syn=true"},
			tick(200*time.Millisecond, "gap1 10; data1 abc"),
			{seg: fromClient(113, 9, "d"), want: "data1 d turn +8"},
		}},
		{"SYN seen, first data reordered", []step{
			{seg: syn(99)},
			{seg: fromClient(103, 1, "def"), want: "open1 syn=true"},
			{seg: fromClient(100, 1, "abc"), want: "data1 abc turn; data1 def"},
		}},
		{"only the SYN-ACK seen", []step{
			{seg: synAck(499, 99)},
			{seg: fromClient(103, 500, "def"), want: "open1 syn=true"},
			{seg: fromClient(100, 500, "abc"), want: "data1 abc turn; data1 def"},
		}},
		{"duplicates, from a bridge and its port", []step{
			{seg: syn(99), copy: 1},
			{seg: fromClient(100, 1, "abc"), copy: 2, want: "open1 syn=true; data1 abc turn"},
			{seg: fromClient(103, 9, "def"), copy: 1, want: "data1 def turn +8"},
			{seg: fromClient(106, 9, "", FlagFIN), copy: 1, want: "end1 fin"},
			{seg: fromClient(103, 9, "def")},
		}},
		{"a retransmission merged over the boundary brings only the new tail", []step{
			{seg: fromClient(100, 1, "abc"), want: "open1 syn=false; data1 abc"},
			{seg: fromClient(103, 1, "def"), want: "data1 def"},
			{seg: fromClient(100, 1, "abcdefGH"), want: "data1 GH"},
			{seg: fromClient(101, 1, "bcdefGHi"), want: "data1 i"},
		}},
		{"overlap: the first copy wins, in order", []step{
			{seg: fromClient(100, 1, "abc"), want: "open1 syn=false; data1 abc"},
			{seg: fromClient(101, 1, "XYd"), want: "data1 d"},
		}},
		{"overlap: the first copy wins, buffered", []step{
			{seg: fromClient(100, 1, "abc"), want: "open1 syn=false; data1 abc"},
			{seg: fromClient(105, 1, "fg")},
			{seg: fromClient(108, 1, "ij")},
			{seg: fromClient(104, 1, "eXXhYYk")},
			{seg: fromClient(103, 1, "dZ"), want: "data1 d; data1 e; data1 fgh; data1 ijk"},
		}},
		{"a segment that fills a hole and reaches beyond several buffered ones", []step{
			{seg: fromClient(100, 1, "abc"), want: "open1 syn=false; data1 abc"},
			{seg: fromClient(104, 1, "e")},
			{seg: fromClient(106, 1, "gh")},
			{seg: fromClient(101, 1, "XXdYfZZijk"), want: "data1 d; data1 e; data1 f; data1 gh; data1 ijk"},
		}},
		{"keep-alive probes with a garbage byte", []step{
			{seg: syn(99)},
			{seg: fromClient(100, 1, "abc"), want: "open1 syn=true; data1 abc turn"},
			{seg: fromClient(102, 1, "X"), copy: 3},
			{seg: fromClient(103, 9, "d"), want: "data1 d turn +8"},
		}},
		{"a keep-alive probe is the first packet seen", []step{
			{seg: fromClient(102, 1, "X"), want: "open1 syn=false"},
			{seg: fromClient(103, 1, "def"), want: "data1 def"},
		}},
		{"sequence numbers wrap", []step{
			{seg: syn(0xfffffffc)},
			{seg: fromClient(0xfffffffd, 0xfffffffe, "abc"), want: "open1 syn=true; data1 abc turn"},
			{seg: fromClient(2, 3, "fg")},
			{seg: fromClient(0, 3, "de"), want: "data1 de turn +5; data1 fg"},
			{seg: fromClient(0xfffffffd, 3, "abcdefgh"), want: "data1 h"},
		}},
		{"wrap inside one segment", []step{
			{seg: fromClient(0xfffffffe, 1, "abcd"), want: "open1 syn=false; data1 abcd"},
			{seg: fromClient(2, 1, "ef"), want: "data1 ef"},
		}},
		{"RST of the client in the middle of a request, then the tuple again", []step{
			{seg: syn(99)},
			{seg: fromClient(100, 1, "ab"), want: "open1 syn=true; data1 ab turn"},
			{seg: fromClient(102, 1, "", FlagRST), want: "end1 rst"},
			{seg: syn(99)},
			{seg: fromClient(100, 1, "cd"), want: "open2 syn=true; data2 cd turn"},
		}},
		{"RST outside the window is ignored", []step{
			{seg: fromClient(100, 1, "ab"), want: "open1 syn=false; data1 ab"},
			{seg: fromClient(1<<30, 1, "", FlagRST)},
			{seg: fromClient(102, 1, "c"), want: "data1 c"},
		}},
		{"RST delivers what waits behind a hole", []step{
			{seg: fromClient(100, 1, "ab"), want: "open1 syn=false; data1 ab"},
			{seg: fromClient(104, 1, "ef")},
			{seg: fromClient(106, 1, "", FlagRST), want: "gap1 2; data1 ef; end1 rst"},
		}},
		{"FIN waits for the data before it", []step{
			{seg: fromClient(100, 1, "ab"), want: "open1 syn=false; data1 ab"},
			{seg: fromClient(104, 1, "", FlagFIN)},
			{seg: fromClient(102, 1, "cd"), want: "data1 cd; end1 fin"},
		}},
		{"FIN and the data before it lost", []step{
			{seg: fromClient(100, 1, "ab"), want: "open1 syn=false; data1 ab"},
			{seg: fromClient(104, 1, "ef", FlagFIN)},
			tick(201*time.Millisecond, "gap1 2; data1 ef; end1 fin"),
		}},
		{"only a FIN ahead, then the end of the capture", []step{
			{seg: fromClient(100, 1, "ab"), want: "open1 syn=false; data1 ab"},
			{seg: fromClient(104, 1, "", FlagFIN)},
			flush("gap1 2; end1 shutdown"),
		}},
		{"a late or repeated SYN leaves a live flow alone", []step{
			{seg: syn(99)},
			{seg: fromClient(100, 1, "abc"), want: "open1 syn=true; data1 abc turn"},
			{seg: syn(99)},
			{seg: fromClient(106, 1, "ghi")},
			{seg: fromClient(103, 1, "def"), want: "data1 def; data1 ghi"},
			{seg: fromClient(100, 1, "abc")},
		}},
		{"a forged SYN does nothing to a flow that goes on", []step{
			{seg: syn(99)},
			{seg: fromClient(100, 1, "abc"), want: "open1 syn=true; data1 abc turn"},
			{seg: syn(77777777)},
			{seg: fromClient(103, 1, "def"), want: "data1 def"},
		}},
		{"the tuple is used again after a SYN", []step{
			{seg: syn(99)},
			{seg: fromClient(100, 1, "abc"), want: "open1 syn=true; data1 abc turn"},
			{seg: syn(4999)},
			{seg: fromClient(5000, 1, "xyz"), want: "end1 reused; open2 syn=true; data2 xyz turn"},
		}},
		{"the tuple is used again by a connection without data", []step{
			{seg: syn(99)},
			{seg: fromClient(100, 1, "abc"), want: "open1 syn=true; data1 abc turn"},
			{seg: syn(4999)},
			{seg: fromClient(5000, 1, "", FlagFIN), want: "end1 reused"},
			{seg: fromClient(5000, 1, "xyz", FlagFIN), want: "open2 syn=true; data2 xyz turn; end2 fin"},
		}},
		{"the tuple is used again by a connection that is reset at once", []step{
			{seg: syn(99)},
			{seg: fromClient(100, 1, "abc"), want: "open1 syn=true; data1 abc turn"},
			{seg: syn(4999)},
			{seg: fromClient(5000, 1, "", FlagRST), want: "end1 reused"},
		}},
		{"the tuple is used again without a SYN", []step{
			{seg: fromClient(100, 1, "abc"), want: "open1 syn=false; data1 abc"},
			{seg: fromClient(3_000_000_000, 1, "xyz"), want: "end1 reused; open2 syn=false; data2 xyz"},
			{seg: fromClient(2_000_000_000, 1, "pqr"), want: "end2 reused; open3 syn=false; data3 pqr"},
		}},
		{"new data after the FIN is a new connection", []step{
			{seg: fromClient(100, 1, "abc", FlagFIN), want: "open1 syn=false; data1 abc; end1 fin"},
			{seg: fromClient(100, 1, "abc")},
			{seg: fromClient(9000, 1, "xyz"), want: "open2 syn=false; data2 xyz"},
		}},
		{"the snap length cut the payload", []step{
			{seg: syn(99)},
			{seg: cutTo(fromClient(100, 1, "abcdef"), 2), want: "open1 syn=true; data1 ab turn; gap1 4"},
			{seg: cutTo(fromClient(106, 1, "ghi"), 0), want: "gap1 3"},
			{seg: fromClient(109, 1, "j"), want: "data1 j"},
		}},
		{"a cut segment out of order, repeated in full: the first copy wins", []step{
			{seg: fromClient(100, 1, "ab"), want: "open1 syn=false; data1 ab"},
			{seg: cutTo(fromClient(104, 1, "efgh"), 1)},
			{seg: fromClient(104, 1, "efghi")},
			{seg: fromClient(102, 1, "cd"), want: "data1 cd; data1 e; gap1 3; data1 i"},
		}},
		{"requests only: a hole is given up after 64 packets", []step{
			{seg: fromClient(100, 1, "ab"), want: "open1 syn=false; data1 ab"},
			{seg: fromClient(104, 1, "ef"), copy: 63},
			{seg: fromClient(104, 1, "ef"), want: "gap1 2; data1 ef"},
		}},
		{"requests only: a hole is given up after 200 ms", []step{
			{seg: fromClient(100, 1, "ab"), want: "open1 syn=false; data1 ab"},
			{seg: fromClient(104, 1, "ef")},
			tick(190*time.Millisecond, ""),
			tick(11*time.Millisecond, "gap1 2; data1 ef"),
			{seg: fromClient(106, 1, "gh"), want: "data1 gh"},
		}},
		{"progress restarts the wait", []step{
			{seg: fromClient(100, 1, "ab"), want: "open1 syn=false; data1 ab"},
			{seg: fromClient(106, 1, "gh")},
			{seg: fromClient(102, 1, "cd"), wait: 150 * time.Millisecond, want: "data1 cd"},
			tick(100*time.Millisecond, ""),
			{seg: fromClient(104, 1, "ef"), want: "data1 ef; data1 gh"},
		}},
		{"both directions: a hole that the server acknowledged is given up after 8 packets", []step{
			{seg: fromClient(100, 500, "ab"), want: "open1 syn=false; data1 ab"},
			{seg: fromServer(500, 102, "+1"), want: "reply1 +1/2"},
			{seg: fromClient(104, 502, "ef")},
			{seg: fromServer(502, 106, ""), copy: 5},
			{seg: fromServer(502, 106, ""), want: ""},
			{seg: fromServer(502, 106, ""), want: "gap1 2; data1 ef +2"},
		}},
		{"both directions: or after 50 ms", []step{
			{seg: fromServer(500, 100, "+0"), want: "open1 syn=false; reply1 +0/2"},
			{seg: fromClient(100, 502, "ab"), want: "data1 ab turn +2"},
			{seg: fromClient(104, 502, "ef")},
			{seg: fromServer(502, 106, "")},
			tick(40*time.Millisecond, ""),
			tick(11*time.Millisecond, "gap1 2; data1 ef"),
		}},
		{"both directions: what the server lacks too will come again", []step{
			{seg: fromServer(500, 100, "+0"), want: "open1 syn=false; reply1 +0/2"},
			{seg: fromClient(100, 502, "ab"), want: "data1 ab turn +2"},
			{seg: fromClient(104, 502, "ef"), copy: 99},
			{seg: fromServer(502, 102, ""), copy: 10},
			tick(time.Second, ""),
			{seg: fromClient(102, 502, "cd"), want: "data1 cd; data1 ef"},
		}},
		{"both directions: and is given up after 2 s", []step{
			{seg: fromServer(500, 100, "+0"), want: "open1 syn=false; reply1 +0/2"},
			{seg: fromClient(100, 502, "ab"), want: "data1 ab turn +2"},
			{seg: fromClient(104, 502, "ef")},
			tick(2*time.Second+time.Millisecond, "gap1 2; data1 ef"),
		}},
		{"both directions: no turn while the server has not acknowledged everything", []step{
			{seg: syn(99)},
			{seg: synAck(499, 99)},
			{seg: fromClient(100, 500, "ab"), want: "open1 syn=true; data1 ab turn"},
			{seg: fromClient(102, 500, "cd"), want: "data1 cd"},
			{seg: fromServer(500, 102, "+1"), want: "reply1 +1/2"},
			{seg: fromClient(104, 502, "ef"), want: "data1 ef +2"},
			{seg: fromServer(502, 106, "+2"), want: "reply1 +2/2"},
			{seg: fromClient(106, 504, "gh"), want: "data1 gh turn +2"},
		}},
		{"both directions: data sent before the reply arrived is no turn", []step{
			{seg: fromClient(100, 500, "ab"), want: "open1 syn=false; data1 ab"},
			{seg: fromServer(500, 102, "+1"), want: "reply1 +1/2"},
			{seg: fromClient(102, 500, "cd"), want: "data1 cd"},
		}},
		{"both directions: after a loss a bare acknowledgement proves no turn", []step{
			{seg: fromServer(500, 100, "+0"), want: "open1 syn=false; reply1 +0/2"},
			{seg: fromClient(100, 502, "ab"), want: "data1 ab turn +2"},
			{seg: fromServer(502, 102, "+1"), want: "reply1 +1/2"},
			// 102..103 lost: the first half of a request; 104 is its second half.
			{seg: fromServer(504, 104, "")},
			{seg: fromClient(104, 504, "ef")},
			{seg: fromServer(504, 106, "")},
			tick(51*time.Millisecond, "gap1 2; data1 ef +2"),
			{seg: fromServer(504, 106, "+2"), want: "reply1 +2/2"},
			{seg: fromClient(106, 506, "gh"), want: "data1 gh turn +2"},
		}},
		{"both directions: after a loss data behind a reply to it is a turn, however late it is delivered", []step{
			{seg: fromServer(500, 100, "+0"), want: "open1 syn=false; reply1 +0/2"},
			{seg: fromClient(100, 502, "ab"), want: "data1 ab turn +2"},
			{seg: fromServer(502, 104, "+2"), want: "reply1 +2/2"}, // 102..103 lost
			{seg: fromClient(104, 504, "ef")},
			{seg: fromServer(504, 106, "+3"), want: "reply1 +3/2"},
			{seg: fromClient(106, 506, "gh")},
			tick(51*time.Millisecond, "gap1 2; data1 ef turn +2; data1 gh turn +2"),
		}},
		{"requests only: after a loss the acknowledgement number proves nothing once", []step{
			{seg: fromClient(100, 500, "ab"), want: "open1 syn=false; data1 ab"},
			{seg: fromClient(104, 510, "ef")},
			{seg: fromClient(106, 520, "gh")},
			tick(time.Second, "gap1 2; data1 ef +10; data1 gh turn +10"),
		}},
		{"server data first: its acknowledgement shows whether the client's first bytes are a turn", []step{
			{seg: fromServer(500, 100, "+PONG"), want: "open1 syn=false; reply1 +PONG/5"},
			{seg: fromClient(100, 505, "ab"), want: "data1 ab turn +5"},
		}},
		{"server data first, client bytes under way: no turn", []step{
			{seg: fromServer(500, 100, "+PONG"), want: "open1 syn=false; reply1 +PONG/5"},
			{seg: fromClient(103, 505, "ab"), want: "data1 ab +5"},
		}},
		{"replies: duplicates are cut, gaps are told", []step{
			{seg: fromClient(100, 500, "ab"), want: "open1 syn=false; data1 ab"},
			{seg: fromServer(500, 102, "abc"), copy: 1, want: "reply1 abc/3"},
			{seg: fromServer(501, 102, "bcd"), want: "reply1 d/1"},
			{seg: fromServer(506, 102, "gh"), want: "reply1 /2; reply1 gh/2"},
			{seg: cutTo(fromServer(508, 102, "ijk"), 1), want: "reply1 i/3"},
			{seg: fromServer(511, 102, ""), want: ""},
		}},
		{"RST of the server", []step{
			{seg: fromClient(100, 500, "ab"), want: "open1 syn=false; data1 ab"},
			{seg: fromServer(500, 102, "", FlagRST), want: "end1 rst"},
		}},
		{"FIN of the server leaves the client's direction open", []step{
			{seg: fromClient(100, 500, "ab"), want: "open1 syn=false; data1 ab"},
			{seg: fromServer(500, 102, "", FlagFIN)},
			{seg: fromClient(102, 501, "cd"), want: "data1 cd turn +1"},
			{seg: fromClient(104, 501, "", FlagFIN), want: "end1 fin"},
		}},
		{"pure acknowledgements and closing packets of unknown connections make no flow", []step{
			{seg: fromClient(100, 500, "")},
			{seg: fromClient(100, 500, "", FlagFIN)},
			{seg: fromClient(100, 500, "", FlagRST)},
			{seg: fromServer(500, 100, "")},
			{seg: fromServer(500, 100, "", FlagRST)},
			flush(""),
		}},
		{"a connection without data is no flow", []step{
			{seg: syn(99)}, {seg: synAck(499, 99)}, {seg: fromClient(100, 500, "")},
			{seg: fromClient(100, 500, "", FlagFIN)}, flush(""),
		}},
		{"idle flows expire", []step{
			{seg: fromClient(100, 500, "ab"), want: "open1 syn=false; data1 ab"},
			tick(29*time.Minute, ""),
			tick(2*time.Minute, "end1 idle"),
			{seg: fromClient(102, 500, "cd"), want: "open2 syn=false; data2 cd"},
		}},
		{"flush delivers what waits and ends all", []step{
			{seg: fromClient(100, 500, "ab"), want: "open1 syn=false; data1 ab"},
			{seg: fromClient(104, 500, "ef")},
			{seg: fromClient(108, 500, "ij")},
			flush("gap1 2; data1 ef; gap1 2; data1 ij; end1 shutdown"),
			flush(""),
		}},
		{"the wire length is missing: the payload counts", []step{
			{seg: func() Segment { s := fromClient(100, 1, "ab"); s.WireLen = 0; return s }(), want: "open1 syn=false; data1 ab"},
			{seg: fromClient(102, 1, "cd"), want: "data1 cd"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, r := newRecorded(AssemblerConfig{})
			runSteps(t, a, r, tt.steps)
			if st := a.Stats(); st.Flows == 0 && (st.Buffered != 0 || a.buffer.first != 0) {
				t.Errorf("%d pages left without a flow", st.Buffered)
			}
		})
	}
}

// TestDocExample is the example of the package documentation.
func TestDocExample(t *testing.T) {
	a, r := newRecorded(AssemblerConfig{})
	runSteps(t, a, r, []step{
		{seg: syn(99)},
		{seg: fromClient(100, 1, "*1\r\n"), want: "open1 syn=true; data1 *1\r\n turn"},
		{seg: fromClient(108, 1, "PING\r\n")},
		{seg: fromClient(104, 1, "$4\r\nPING\r\n"), want: "data1 $4\r\n; data1 PING\r\n"},
		{seg: fromClient(114, 1, "", FlagFIN), want: "end1 fin"},
	})
}

func TestAssemblerStopsRepliesOnRequest(t *testing.T) {
	a, r := newRecorded(AssemblerConfig{})
	r.wantReply = false
	runSteps(t, a, r, []step{
		{seg: fromClient(100, 500, "ab"), want: "open1 syn=false; data1 ab"},
		{seg: fromServer(500, 102, "+1"), want: "reply1 +1/2"},
		{seg: fromServer(502, 102, "+2")},
	})
	r.askReplies = true
	runSteps(t, a, r, []step{
		{seg: fromClient(102, 504, "cd"), want: "data1 cd turn +4"},
		{seg: fromServer(600, 104, "+3"), want: "reply1 +3/2"},
		{seg: fromServer(602, 104, "+4")},
	})
}

func TestAssemblerDirection(t *testing.T) {
	ports, err := ParsePorts("6379,6380")
	if err != nil {
		t.Fatal(err)
	}
	both := func(s Segment) Segment { // a replica whose own port is a server port too
		if s.SrcPort == 40000 {
			s.SrcPort = 6380
		} else {
			s.DstPort = 6380
		}
		return s
	}
	other := fromClient(1, 1, "x")
	other.DstPort = 80
	tests := []struct {
		name  string
		steps []step
	}{
		{"the SYN decides", []step{
			{seg: both(syn(99))},
			{seg: both(fromServer(500, 100, "*1"))},
			{seg: both(fromClient(100, 500, "+x")), want: "data1 +x turn"},
		}},
		{"the SYN-ACK decides", []step{
			{seg: both(synAck(499, 99))},
			{seg: both(fromClient(100, 500, "+x")), want: "open1 syn=true; data1 +x turn"},
		}},
		{"the payload decides: a request", []step{
			{seg: both(fromClient(100, 500, "*1")), want: "open1 syn=false; data1 *1"},
			{seg: both(fromServer(500, 102, "*0")), want: "reply1 *0/2"},
		}},
		{"the payload decides: a reply", []step{
			{seg: both(fromServer(500, 100, "+OK")), want: "open1 syn=false; reply1 +OK/3"},
			{seg: both(fromClient(100, 503, "*1")), want: "data1 *1 turn +3"},
		}},
		{"other ports", []step{{seg: other}}},
	}
	tests[0].steps[1].want = "open1 syn=true; reply1 *1/2"
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, r := newRecorded(AssemblerConfig{Ports: ports})
			runSteps(t, a, r, tt.steps)
		})
	}
}

func TestAssemblerHostIsClientAndServer(t *testing.T) {
	a, r := newRecorded(AssemblerConfig{})
	there, back := fromClient(100, 1, "ab"), fromClient(700, 1, "xy")
	back.Src, back.Dst = there.Dst, there.Src
	runSteps(t, a, r, []step{
		{seg: there, want: "open1 syn=false; data1 ab"},
		{seg: back, want: "open2 syn=false; data2 xy"},
	})
}

// TestAssemblerMeta checks what the recorder leaves out: addresses, ports and
// times, also for bytes that waited and for ticks.
func TestAssemblerMeta(t *testing.T) {
	k := &metaStream{}
	a := NewAssembler[flowState](AssemblerConfig{}, k)
	add := func(s Segment, at int64) { s.T = startT + at; a.Add(&s) }
	add(fromClient(100, 1, "ab"), 0)
	add(fromClient(104, 1, "ef"), 1)
	other := fromClient(100, 1, "zz")
	other.SrcPort = 40001
	add(other, 2)
	a.Tick(startT + int64(time.Second))
	a.Flush(startT + 2*int64(time.Second))
	for i, m := range k.metas {
		if m.Port != 6379 {
			t.Errorf("call %d: port %d, want 6379", i, m.Port)
		}
	}
	want := []struct {
		at   int64
		port uint16
	}{{0, 40000}, {0, 40000}, {2, 40001}, {2, 40001}, {int64(time.Second), 40000}, {int64(time.Second), 40000}, {2e9, 0}, {2e9, 0}}
	if len(k.metas) != len(want) {
		t.Fatalf("%d calls, want %d", len(k.metas), len(want))
	}
	for i, w := range want {
		m := k.metas[i]
		if m.T != startT+w.at || m.ClientPort != w.port || w.port != 0 && m.Client != clientAddr {
			t.Errorf("call %d: %+v, want time +%d and port %d", i, m, w.at, w.port)
		}
	}
}

type metaStream struct{ metas []Meta }

func (k *metaStream) keep(m *Meta)                                      { k.metas = append(k.metas, *m) }
func (k *metaStream) Open(_ *flowState, m *Meta, _ bool)                { k.keep(m) }
func (k *metaStream) Data(_ *flowState, m *Meta, _ []byte)              { k.keep(m) }
func (k *metaStream) Gap(_ *flowState, m *Meta, _ int64)                { k.keep(m) }
func (k *metaStream) End(_ *flowState, m *Meta, _ EndReason)            { k.keep(m) }
func (k *metaStream) Reply(_ *flowState, _ *Meta, _ []byte, _ int) bool { return true }
