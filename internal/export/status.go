package export

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/hotsniff/hotsniff/internal/page"
	"github.com/hotsniff/hotsniff/internal/pipeline"
)

// StatusSchema names the format of Status.
const StatusSchema = "hotsniff.status/v1"

// Status answers GET /api/v1/status. Counters are since the start.
type Status struct {
	Schema        string            `json:"schema"`
	Node          string            `json:"node"`
	Version       string            `json:"version"`
	GoVersion     string            `json:"go_version"`
	UptimeSeconds float64           `json:"uptime_seconds"`
	Healthy       bool              `json:"healthy"`
	Ready         bool              `json:"ready"`
	CPURatio      float64           `json:"cpu_ratio"` // of one core, by the capture thread
	Configuration map[string]string `json:"configuration"`
	SnapshotAt    *time.Time        `json:"snapshot_at"` // null before the first one
	Interfaces    []InterfaceStatus `json:"interfaces"`
	Sampling      SamplingStatus    `json:"sampling"`
	Connections   ConnectionStatus  `json:"connections"`
	Ports         []PortStatus      `json:"ports"`
	Publish       *page.Publish     `json:"publish"` // null when nothing is published
	Page          page.Streams      `json:"page"`
}

// InterfaceStatus is one interface of a Status.
type InterfaceStatus struct {
	Name             string  `json:"name"`
	Packets          uint64  `json:"packets"`
	Bytes            uint64  `json:"bytes"`
	Dropped          uint64  `json:"dropped"`           // by the kernel, for want of room
	InterfaceDropped uint64  `json:"interface_dropped"` // by the device
	DropRatio        float64 `json:"drop_ratio"`        // of what the kernel had
}

// SamplingStatus says which part of the traffic is looked at: 1 in so many.
type SamplingStatus struct {
	KernelEvery int     `json:"kernel_every"`
	EventEvery  int     `json:"event_every"`
	CPUBudget   float64 `json:"cpu_budget"` // part of one core, 0: no limit
	Fixed       bool    `json:"fixed"`      // kernel_every was asked for
	Available   bool    `json:"available"`  // the kernel can sample
	// Coverage is the part of the bytes in sampled packets whose requests were
	// seen, about 1; less where long pipelines of large values hide heads. 0
	// when none was sampled.
	Coverage float64 `json:"coverage"`
}

// ConnectionStatus is the connections of a Status.
type ConnectionStatus struct {
	Followed       int     `json:"followed"` // now
	Opened         uint64  `json:"opened"`
	Encrypted      uint64  `json:"encrypted"`
	EncryptedRatio float64 `json:"encrypted_ratio"` // of those opened
	Gaps           uint64  `json:"gaps"`
}

// PortStatus is one server port of a Status.
type PortStatus struct {
	Port     uint16 `json:"port"`
	Requests uint64 `json:"requests"`
	Accesses uint64 `json:"accesses"`
	HotKeys  int    `json:"hot_keys"`
	Distinct uint64 `json:"distinct_keys"`
}

// ratio is a/b, 0 of nothing.
func ratio(a, b uint64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func (o *Options) status() *Status {
	_, stalled := o.Monitor.Stalled()
	st := &Status{
		Schema: StatusSchema, Node: o.Node, Version: o.Version, GoVersion: runtime.Version(),
		UptimeSeconds: time.Since(o.Monitor.started).Seconds(), Healthy: !stalled, Ready: !stalled && o.Monitor.Ready(),
		Configuration: o.Config,
		Interfaces:    []InterfaceStatus{}, Ports: []PortStatus{}, Sampling: SamplingStatus{KernelEvery: 1, EventEvery: 1},
		Publish: o.publishing(), Page: o.page.Streams(),
	}
	if s := o.Latest(); s != nil {
		st.fill(s)
	}
	return st
}

// publishing says how publishing goes; nil when nothing is published.
func (o *Options) publishing() *page.Publish {
	if o.Publish == nil {
		return nil
	}
	s := o.Publish()
	return &page.Publish{Result: s.LastError.String(), Failing: s.Failing, Receivers: s.Receivers}
}

// pageStatus is the part of the status that the page shows.
func (o *Options) pageStatus() page.Status {
	_, stalled := o.Monitor.Stalled()
	st := page.Status{Version: o.Version, Healthy: !stalled, Publish: o.publishing()}
	if s := o.Latest(); s != nil {
		st.CPURatio = s.Sampling.CPURatio
	}
	return st
}

// fill adds what a snapshot knows.
func (st *Status) fill(s *pipeline.Snapshot) {
	at := time.Unix(0, s.T).UTC()
	st.SnapshotAt = &at
	for _, in := range s.Capture.Interfaces {
		st.Interfaces = append(st.Interfaces, InterfaceStatus{in.Name, in.Packets, in.Bytes, in.Dropped, in.InterfaceDropped,
			ratio(in.Dropped, in.Packets+in.Dropped)})
	}
	n := &s.Sampling
	st.CPURatio = n.CPURatio
	st.Sampling = SamplingStatus{CPUBudget: n.Budget, Fixed: n.Fixed, Available: n.Available, Coverage: n.Coverage}
	st.Sampling.KernelEvery, st.Sampling.EventEvery = sampling(s)
	st.Connections = ConnectionStatus{int(s.Assembler.Flows), s.Assembler.Opened, s.Decoder.Encrypted,
		ratio(s.Decoder.Encrypted, s.Assembler.Opened), s.Assembler.Gaps}
	for i := range s.Ports {
		p := &s.Ports[i]
		st.Ports = append(st.Ports, PortStatus{p.Port, p.Requests, p.Accesses, p.Slow.Hot, p.Slow.Distinct})
	}
}

func (o *Options) serveStatus(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.Encode(o.status()) // an error means that the client went away
}

// serveHealthy answers 200 while the capture loop makes progress.
func (o *Options) serveHealthy(w http.ResponseWriter, _ *http.Request) {
	if d, stalled := o.Monitor.Stalled(); stalled {
		http.Error(w, "the capture loop has made no progress for "+strconv.Itoa(int(d.Seconds()))+" s", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// serveReady answers 200 once the first window has passed.
func (o *Options) serveReady(w http.ResponseWriter, r *http.Request) {
	if _, stalled := o.Monitor.Stalled(); stalled {
		o.serveHealthy(w, r)
		return
	}
	if !o.Monitor.Ready() {
		http.Error(w, "the first window of "+readyAfter.String()+" has not passed yet", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}
