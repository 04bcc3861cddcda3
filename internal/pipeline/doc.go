// Package pipeline is the only place where capture, resp, topk and actions
// meet: packets in, immutable snapshots out.
//
//	capture.Source -> Engine.Run -> capture.Assembler -> Engine.Data
//	    -> resp.Decoder -> request -> topk.Detector   (one per server port)
//	each tick (250 ms of packet time): Snapshot behind an atomic pointer
//
// One goroutine, the caller of Run, owns everything: no lock, channel, atomic
// or allocation per packet. Others call Latest, which loads the pointer; a
// Snapshot never changes once it is there.
//
// Limits: at most MaxPorts server ports are followed at once (a detector has
// 1.3 MB); requests to further ports are counted in Snapshot.PortsRefused. What
// the packages below bound is written in their doc.go files.
package pipeline
