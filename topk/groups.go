package topk

// groupSample: while keys crowd each other out, only one new key in 16 is
// matched against the rules, and its first access counts 16 times. Which one is
// decided by the seeded hash, so the group share stays unbiased.
const (
	groupSample     = 16
	groupSampleBits = 60 // top bits of the hash that must be zero
)

// groups counts the accesses per rule group and second.
type groups struct {
	on    bool
	n     int
	cells []uint64 // column-major, like the slow ring
	rules *RuleSet
}

func (g *groups) init(s *RuleSet) {
	old := *g
	*g = groups{rules: s}
	if s == nil || len(s.groups) == 0 {
		return
	}
	g.on, g.n = true, len(s.groups)
	g.cells = make([]uint64, maxSlowSeconds*g.n)
	for i, name := range s.groups {
		old.carry(g, i, name) // a reload keeps what it can
	}
}

// carry copies the column of a group of the same name from g.
func (g *groups) carry(to *groups, i int, name string) {
	if !g.on {
		return
	}
	for j, n := range g.rules.groups {
		if n != name {
			continue
		}
		for c := range maxSlowSeconds {
			to.cells[c*to.n+i] = g.cells[c*g.n+j]
		}
	}
}

func (g *groups) add(rule, col int, w uint64) {
	if i := g.rules.group[rule]; i >= 0 {
		g.cells[col*g.n+int(i)] += w
	}
}

// openSecond empties the column of the second that begins.
func (g *groups) openSecond(col int) {
	if g.on {
		clear(g.cells[col*g.n : (col+1)*g.n])
	}
}

// sum returns the accesses of group i in the slow window.
func (g *groups) sum(i, cols int) uint64 {
	n := uint64(0)
	for c := range cols {
		n += g.cells[c*g.n+i]
	}
	return n
}

// countGroup counts an access for the group of its key. The rule of a key is
// looked up once, on its second access, or on its first while nothing is
// crowded out (see admit).
func (d *Detector) countGroup(e int, a *Access, w uint32) {
	m := &d.t.meta[e]
	if m.rule == ruleUnknown {
		if d.t.own(e) <= w {
			return
		}
		d.matchRule(m, a.Key)
	}
	if m.rule >= ruleFirst {
		d.groups.add(int(m.rule)-ruleFirst, d.win.scol, uint64(w))
	}
}

// matchNew looks up the rule of a key on its first access.
func (d *Detector) matchNew(m *meta, h uint64, a *Access, crowded bool) {
	if !d.groups.on || crowded && h>>groupSampleBits != 0 {
		return
	}
	d.matchRule(m, a.Key)
	if crowded && m.rule >= ruleFirst {
		d.groups.add(int(m.rule)-ruleFirst, d.win.scol, uint64(d.weight)*(groupSample-1))
	}
}

func (d *Detector) matchRule(m *meta, key []byte) {
	m.rule = ruleNone
	if i := d.rules.find(key); i >= 0 {
		m.rule = uint8(i + ruleFirst)
	}
}
