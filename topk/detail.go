package topk

// Per-key details are kept for the keys that matter: those that lead the window
// and those that approach the threshold.
const (
	detailChunk  = 25 // details are made in chunks, so a port with few keys has few
	detailSlots  = 13 // twelfths of the slow window, and the one that is filling
	maxCommands  = 16 // commands told apart per key; redis has about 20 for a data type
	clientBits   = 8192
	topClients   = 8
	heatUnit     = 64 // bytes a unit of heat stands for
	heatDecayLog = 5  // heat loses 1/32 a second
)

// detailSlot counts one twelfth of the slow window.
type detailSlot struct {
	accesses, writes uint32
	request, reply   uint64
	commands         [maxCommands + 1]uint32 // the last one: all other commands
	estimated        bool                    // reply is partly shared out
}

// detail is what is known of one key beside its count.
type detail struct {
	entry    uint16 // entry + 1, 0 = free
	ncmd     uint8
	ids      [maxCommands]uint16
	slots    [detailSlots]detailSlot
	clients  [2]clientSet // alternating generations of one slow window each
	heaviest [2]clientTop
}

func (d *detail) reset(e int) { *d = detail{entry: uint16(e) + 1} }

// add counts an access. It is called for keys with a detail only.
func (d *detail) add(a *Access, w uint32, slot, gen int) {
	s := &d.slots[slot]
	s.accesses += w
	if a.Write {
		s.writes += w
	}
	s.request += uint64(max(a.Bytes, 0)) * uint64(w)
	s.commands[d.command(a.Command)] += w
	hi, lo := addressWords(&a.Client)
	if !d.heaviest[gen].add(hi, lo, w) {
		d.clients[gen].add(hashClient(hi, lo))
	}
}

// command returns the index of id in the list of this key.
func (d *detail) command(id uint16) int {
	n := int(d.ncmd)
	for i, v := range d.ids[:n] {
		if v == id {
			return i
		}
	}
	if n == maxCommands {
		return maxCommands
	}
	d.ids[n] = id
	d.ncmd++
	return n
}

// detailSum is a detail summed over the slow window, still as counted.
type detailSum struct {
	accesses, writes, request, reply float64
	commands                         [maxCommands + 1]float64
	estimated                        bool
}

// sum adds up the slots, newest first, until the own accesses of the window are
// covered; the oldest slot counts for the part of it that is needed. When the
// detail saw fewer accesses than the window holds, it is scaled up and
// extrapolated is true.
func (d *detail) sum(own uint64, slot int, out *detailSum) (extrapolated bool) {
	*out = detailSum{}
	left := float64(own)
	for i := 0; i < detailSlots && left > 0; i++ {
		s := &d.slots[(slot-i+detailSlots)%detailSlots]
		if s.accesses == 0 {
			// Replies may come in a later slot than their requests.
			out.reply += float64(s.reply)
			continue
		}
		part := min(left/float64(s.accesses), 1)
		left -= part * float64(s.accesses)
		out.addPart(s, part)
	}
	if left < 0.5 || out.accesses == 0 {
		return out.accesses == 0 && own > 0
	}
	out.scale(float64(own) / out.accesses)
	return true
}

func (o *detailSum) addPart(s *detailSlot, part float64) {
	o.accesses += part * float64(s.accesses)
	o.writes += part * float64(s.writes)
	o.request += part * float64(s.request)
	o.reply += part * float64(s.reply)
	for i, c := range s.commands {
		o.commands[i] += part * float64(c)
	}
	o.estimated = o.estimated || s.estimated
}

func (o *detailSum) scale(f float64) {
	o.accesses *= f
	o.writes *= f
	o.request *= f
	o.reply *= f
	for i := range o.commands {
		o.commands[i] *= f
	}
}
