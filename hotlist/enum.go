package hotlist

// State says where a key is in its life on the list.
type State uint8

// The states of a listed key. The zero value is StateHot: a state that this
// version does not know is read as hot, because the key is on the list.
const (
	// StateHot: the key's share qualifies now.
	StateHot State = iota
	// StateCooling: the share fell, the key stays listed for the cooldown.
	StateCooling
	// StatePinned: listed by hand, whatever its share.
	StatePinned
)

var stateNames = [...]string{"hot", "cooling", "pinned"}

// String returns the name on the wire.
func (s State) String() string { return enumName(stateNames[:], int(s)) }

// Action is what the daemon advises an application to do with a key.
type Action uint8

// The actions. An action that this version does not know is read as ActionNone.
const (
	// ActionNone: nothing; the key is listed for information only.
	ActionNone Action = iota
	// ActionLocalize: serve it from the application's own memory.
	ActionLocalize
	// ActionReplicate: read it from several copies on different cluster slots.
	ActionReplicate
	// ActionAggregate: sum writes locally and flush them a few times a second.
	ActionAggregate
	// ActionLimit: slow the clients that cause it down.
	ActionLimit
)

var actionNames = [...]string{"none", "localize", "replicate", "aggregate", "limit"}

// String returns the name on the wire.
func (a Action) String() string { return enumName(actionNames[:], int(a)) }

// ParseAction returns the action of that name on the wire, and whether there
// is one.
func ParseAction(name string) (Action, bool) {
	i, ok := enumIndex(actionNames[:], name)
	return Action(i), ok
}

// Reason says why the action was chosen.
type Reason uint8

// The reasons. The zero value stands for none given, or one that this version
// does not know.
const (
	ReasonUnknown Reason = iota
	// ReasonReadHot: mostly reads.
	ReasonReadHot
	// ReasonWriteHot: mostly writes, which a cache cannot take.
	ReasonWriteHot
	// ReasonSingleClient: one client sends most of the accesses.
	ReasonSingleClient
	// ReasonByteHot: the key takes an outsized share of the bytes.
	ReasonByteHot
	// ReasonManual: somebody pinned it.
	ReasonManual
)

var reasonNames = [...]string{"", "read-hot", "write-hot", "single-client", "byte-hot", "manual"}

// String returns the name on the wire, empty for ReasonUnknown.
func (r Reason) String() string { return enumName(reasonNames[:], int(r)) }

func enumName(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return names[0]
}

// enumIndex returns 0 for a name that is not in the table, so that the zero
// value of each enum is what an unknown name means.
func enumIndex(names []string, name string) (int, bool) {
	for i, n := range names {
		if n == name {
			return i, true
		}
	}
	return 0, false
}
