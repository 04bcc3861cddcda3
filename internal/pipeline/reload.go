package pipeline

import "github.com/hotsniff/hotsniff/topk"

// tuning is what a reload of the configuration may change, handed from any
// goroutine to the one of Run.
type tuning struct {
	detector topk.Config
	top      int
}

// Reconfigure replaces thresholds, rules and limits of the detectors and the
// number of keys in a snapshot. What has been counted, the windows, the list
// and since when its keys are hot stay. It never blocks; the engine takes it in
// at its next tick, for ports that it meets later too. Any goroutine.
func (e *Engine) Reconfigure(detector topk.Config, top int) {
	e.tuningNext.Store(&tuning{detector, top})
}

// takeTuning brings the detectors up to date. Called once a tick: it costs one
// atomic load unless something changed.
func (e *Engine) takeTuning() {
	next := e.tuningNext.Load()
	if next == e.tuning {
		return
	}
	e.tuning = next
	e.cfg.Detector, e.cfg.Top = next.detector, next.top
	for _, p := range e.active {
		if p.detector != nil {
			p.detector.Reconfigure(e.detectorConfig())
		}
	}
}
