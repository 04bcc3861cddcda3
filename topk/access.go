package topk

// Access is one use of one key by one request: MGET of 100 keys is 100
// accesses. The caller owns it and may reuse it; Add keeps no slice of it.
type Access struct {
	T       int64    // packet time, nanoseconds since the epoch
	Key     []byte   // key bytes, at most MaxKeyBytes (a prefix when KeyLen is larger)
	KeyLen  int64    // full length of the key; 0 or len(Key) when Key is whole
	Command uint16   // opaque command number; names are joined in by the caller
	Write   bool     // the command may change the key
	Read    bool     // the command may read the key; informative, see KeyStat.Reads
	Bytes   int64    // request bytes on the wire that this access stands for
	Client  [16]byte // client address, IPv4 as v4-mapped
}

// Handle names the table entry that counted an access, so that the bytes of a
// later reply can be added to it. The zero Handle names nothing (the access was
// not sampled). A handle whose entry has meanwhile been given to another key is
// recognised and its reply counts for the port only.
type Handle uint32

// State of a key in a Snapshot.
type State uint8

// The states of a key.
const (
	StateNone     State = iota // below the threshold
	StateProbable              // the estimate reaches the threshold, the lower bound does not
	StateHot                   // the lower bound reached the threshold
	StateCooling               // was hot; its slow share fell below half of the threshold
	StatePinned                // listed by hand, whatever its share
	StateBanned                // never listed, by hand
)

var stateNames = [...]string{"none", "probable", "hot", "cooling", "pinned", "banned"}

// String returns the name that reports and lists use.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// Window names one of the two sliding windows of a Detector.
type Window uint8

// The windows.
const (
	WindowSlow Window = iota // 60 s by default
	WindowFast               // 5 s by default
)

// Cause says which rule put a key on the list.
type Cause uint8

// The causes.
const (
	CauseShare  Cause = iota // share of the accesses
	CauseBytes               // share of the bytes
	CauseManual              // pinned by hand
)

var causeNames = [...]string{"share", "bytes", "manual"}

// String returns the lower-case name of the cause.
func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return "unknown"
}

// EventKind is a change of the hot list.
type EventKind uint8

// The changes.
const (
	EventHot EventKind = iota
	EventCooling
	EventGone
)

var eventNames = [...]string{"hot", "cooling", "gone"}

// String returns the name that event lines use.
func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return "unknown"
}

// Event is one change of the hot list. It owns its key.
type Event struct {
	T             int64 // packet time at which the window that decided ended
	Kind          EventKind
	Cause         Cause
	Key           []byte
	KeyLen        int64 // full length; larger than len(Key) when only a prefix is known
	Hash          uint64
	Since         int64 // when the key last became hot
	WindowSeconds int   // window that decided
	Share         float64
	ShareLow      float64 // bounds at the confidence the decision used
	ShareHigh     float64
	Rate          float64 // accesses per second in that window, scaled to the full traffic
	Rule, Action  string
}
