package resp

// Conn is the decoder's state of one connection. The zero value is a
// connection whose start was not seen. It holds no pointers, so that a flow
// table can store it inline; what a connection needs beyond it is in slots of
// the decoder, named by references that notice when the slot was taken away.
type Conn struct {
	part  ref // unfinished request
	trial ref // requests held back until the connection proves itself
	state connState
	flags connFlags
	doubt uint8 // turns in a row that contradict where we think we are
}

// ref names a slot of a pool. The zero ref names none. Two of them lie in every
// connection, so a ref takes 6 bytes and asks for no alignment to 4.
type ref struct {
	slot uint16 // 1 + index
	gen  generation
}

// generation counts the users of a slot, in two halves.
type generation [2]uint16

func (g generation) next() generation {
	if g[0]++; g[0] == 0 {
		g[1]++
	}
	return g
}

// connState says how the client's bytes are taken.
type connState uint8

const (
	// stateUnseen: the start was not seen and no client byte yet.
	stateUnseen connState = iota
	// stateStart: the start was seen; the first bytes decide what it is.
	stateStart
	// stateSynced: bytes are requests.
	stateSynced
	// stateLost: was in sync, lost it to a hole; waits for a turn.
	stateLost
	// stateSearching: never was in sync; waits for a turn.
	stateSearching
	// stateTrial: a turn looked right; its requests are held.
	stateTrial
	// stateTrialLost: the same, and the rest of the turn is in a hole.
	stateTrialLost
	// stateEncrypted: TLS; nothing can be decoded.
	stateEncrypted
	// stateIgnored: after an error, QUIT or HTTP; the server closes.
	stateIgnored
)

type connFlags uint8

const (
	// flagJoined: the place where decoding began was inferred, at the start
	// of the capture or after a hole.
	flagJoined connFlags = 1 << iota
	// flagReplies: bytes of the server were seen.
	flagReplies
	// flagAcked: Acked was called.
	flagAcked
	// flagProxied: a PROXY header was stripped.
	flagProxied
	// flagReplication: PSYNC or SYNC was seen.
	flagReplication
)

// Synced reports whether the connection's requests are being decoded.
func (c *Conn) Synced() bool { return c.state == stateSynced || c.state == stateStart }

// Encrypted reports whether the connection is TLS.
func (c *Conn) Encrypted() bool { return c.state == stateEncrypted }

// Replication reports whether the client is a replica.
func (c *Conn) Replication() bool { return c.flags&flagReplication != 0 }

// Trusted reports whether requests of this connection are counted at once;
// before that Reply is of use.
func (c *Conn) trusted() bool {
	return c.state == stateStart || c.state == stateSynced || c.state == stateLost || c.state >= stateEncrypted
}
