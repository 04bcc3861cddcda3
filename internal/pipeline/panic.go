package pipeline

import (
	"fmt"
	"runtime/debug"
)

// panicCount counts panics, all of them and those in a row without a packet in
// between.
type panicCount struct {
	total, row uint64
	at         uint64 // Engine.packets at the last one
}

// maxPanicsInARow at successive packets end the engine: it makes no progress
// any more.
const maxPanicsInARow = 3

// recovered goes on after a panic, which is a bug of ours: a daemon beside
// Redis counts it, says it once, and keeps watching. The state of connections
// cannot be trusted any more, so all begin anew, as after a start in the
// middle; windows and counters stay. It reports whether to give up.
func (e *Engine) recovered(v any, damage *[]error) (giveUp bool) {
	p := &e.panics
	p.total++
	if e.packets-p.at <= 1 {
		p.row++
	} else {
		p.row = 1
	}
	p.at = e.packets
	if p.total == 1 {
		e.cfg.OnPanic(v, debug.Stack())
	}
	e.reconnect()
	if p.row < maxPanicsInARow {
		return false
	}
	*damage = append(*damage, fmt.Errorf("no progress after %d panics in a row, the last one: %v", p.row, v))
	return true
}
