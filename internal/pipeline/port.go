package pipeline

import "github.com/hotsniff/hotsniff/topk"

// port is what is counted for one server port.
type port struct {
	number   uint16
	detector *topk.Detector // nil when the whole input is one window
	counter  *topk.Counter  // else nil
	requests uint64
	accesses uint64
	commands []uint64 // requests by resp.CommandID
	history  history  // of the last minute; unused when the whole input is one window
}

// port returns the state of a server port, made at its first request; nil
// when MaxPorts are in use.
func (e *Engine) port(number uint16) *port {
	if p := e.ports[number]; p != nil {
		return p
	}
	if len(e.active) >= MaxPorts {
		return nil
	}
	p := &port{number: number, commands: make([]uint64, e.dec.NumCommands())}
	if e.cfg.Whole {
		p.counter = topk.NewCounter(e.cfg.Detector)
	} else {
		p.detector = topk.New(e.detectorConfig())
		p.history.init(len(p.commands), e.clock.now)
		e.manual.apply(p)
		p.detector.SetSampleEvery(e.thin.every)
	}
	e.ports[number] = p
	e.active = append(e.active, p)
	return p
}

// FullPorts is up to how many ports each keeps as many details as it can.
const FullPorts = 8

// detectorConfig is what was asked for, with fewer details of keys where many
// ports share the memory: always twice those that are shown.
func (e *Engine) detectorConfig() topk.Config {
	cfg := e.cfg.Detector
	if n := min(e.cfg.Ports.Len(), MaxPorts); n > FullPorts && cfg.MaxDetails == 0 {
		cfg.MaxDetails = max(topk.DefaultMaxDetails*FullPorts/n, 2*e.cfg.Top)
	}
	return cfg
}

// add counts one access in whichever structure is in use.
func (p *port) add(a *topk.Access) topk.Handle {
	if p.detector != nil {
		return p.detector.Add(a)
	}
	return p.counter.Add(a)
}

// request counts one request of a command n times.
func (p *port) request(command int, n uint64) {
	p.requests += n
	p.commands[command] += n
	if p.detector != nil {
		p.history.add(command, n)
	}
}

// setWeight makes the accesses added next stand for n.
func (p *port) setWeight(n uint64) {
	if p.detector != nil {
		p.detector.SetSampleEvery(int(n))
	}
}

func (p *port) addReply(h topk.Handle, bytes int64, estimated bool) {
	if p.detector != nil {
		p.detector.AddReply(h, bytes, estimated)
	} else {
		p.counter.AddReply(h, bytes, estimated)
	}
}

// history keeps how many requests, by command, came in each of the last 60
// seconds, so that a report can say them for its window.
type history struct {
	rows   [historySeconds][]uint32 // by second, then by resp.CommandID
	sum    []uint64                 // of all rows
	row    int                      // the row of the current second
	second int64
}

// historySeconds is the length of the slow window.
const historySeconds = 60

// init makes the rows; t is the time of the first request.
func (h *history) init(commands int, t int64) {
	h.second = t / 1e9
	for i := range h.rows {
		h.rows[i] = make([]uint32, commands)
	}
	h.sum = make([]uint64, commands)
}

func (h *history) add(command int, n uint64) {
	h.rows[h.row][command] += uint32(n)
	h.sum[command] += n
}

// rotate moves on to the second of t; seconds without traffic are empty rows.
func (h *history) rotate(t int64) {
	second := t / 1e9
	for steps := min(second-h.second, historySeconds); steps > 0; steps-- {
		h.row = (h.row + 1) % historySeconds
		leaving := h.rows[h.row]
		for c, n := range leaving {
			h.sum[c] -= uint64(n)
		}
		clear(leaving)
	}
	h.second = max(h.second, second)
}
