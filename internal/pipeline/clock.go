package pipeline

// clock turns packet times into a time that never runs backwards. Packets of
// several devices arrive a little out of order: such a packet counts as now. A
// larger step backwards is a clock that was set: from then on times are
// shifted, so that the windows go on instead of standing still until the old
// time is reached again.
type clock struct {
	now   int64 // the newest time returned
	shift int64 // added to packet times
	steps uint64
}

// maxDisorder is the largest step backwards that is taken for disorder: the
// kernel hands packets over within its block timeout of 100 ms.
const maxDisorder = int64(1e9)

// follow returns the time to use for a packet stamped t.
func (c *clock) follow(t int64) int64 {
	t += c.shift
	if t >= c.now {
		c.now = t
		return t
	}
	if c.now-t > maxDisorder {
		c.shift += c.now - t
		c.steps++
	}
	return c.now
}
