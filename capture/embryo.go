package capture

// embryoTable remembers SYNs until data follows. Connections that never send
// data cost no flow, so a SYN flood touches only this table, whose size is
// fixed. It also keeps the SYN of a connection that has data, so that a
// duplicate of the SYN is told from a new connection on the same tuple.
type embryoTable struct {
	sets [][embryoWays]embryo
}

type embryo struct {
	hash uint64 // 0 when empty
	isn  uint32 // initial sequence number of the client
	when uint32 // time in units of 2^21 ns (2 ms) <<1 | 1 when its flow was opened
}

const (
	embryoWays = 8
	// embryoSets times embryoWays SYNs are remembered: 32,768 in 512 KiB. A
	// client sends its first request within a round trip of the SYN, so this
	// serves more than 100,000 new connections a second.
	embryoSets = 4096
)

// init makes the table; sets is a power of two.
func (t *embryoTable) init(sets int) { t.sets = make([][embryoWays]embryo, sets) }

func (t *embryoTable) set(hash uint64) *[embryoWays]embryo {
	return &t.sets[hash&uint64(len(t.sets)-1)]
}

func (t *embryoTable) find(hash uint64) *embryo {
	set := t.set(hash)
	for i := range set {
		if set[i].hash == hash {
			return &set[i]
		}
	}
	return nil
}

// put remembers a SYN. opened says that the flow of this very SYN exists.
func (t *embryoTable) put(hash uint64, isn uint32, now int64, opened bool) {
	when := embryoTime(now)
	if opened {
		when |= 1
	}
	e := t.find(hash)
	if e == nil {
		e = t.victim(hash, when)
	}
	*e = embryo{hash: hash, isn: isn, when: when}
}

// victim picks the entry of the set to overwrite: an empty one, else one whose
// flow was opened, else the oldest.
func (t *embryoTable) victim(hash uint64, now uint32) *embryo {
	set := t.set(hash)
	best := &set[0]
	for i := range set {
		e := &set[i]
		if e.hash == 0 {
			return e
		}
		if e.when&1 != best.when&1 {
			if e.when&1 != 0 {
				best = e
			}
		} else if now-e.when > now-best.when {
			best = e
		}
	}
	return best
}

// pending returns the entry of a SYN whose flow was not opened yet and to which
// a segment at seq can belong.
func (t *embryoTable) pending(hash uint64, seq uint32) *embryo {
	e := t.find(hash)
	if e == nil || e.when&1 != 0 || seq-(e.isn+1) >= seqWindow {
		return nil
	}
	return e
}

func embryoTime(t int64) uint32 { return uint32(t>>21) << 1 }
