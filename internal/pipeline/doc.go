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
// # Sampling
//
// A live source may keep only 1 packet in N (Packet.SampleEvery). Such packets go
// another way, since no byte stream can be followed:
//
//	capture.Packet (N > 1) -> Decode -> resp.FeedSampled -> topk.Detector, N times
//
// thin.go says what that sees and what not. On the first of them all
// connections are forgotten; when every packet comes again, they are joined in
// the middle. Reply bytes are not known meanwhile. A packet that is captured on
// two devices is drawn twice and counts twice.
//
// N is set by a budget of CPU time of the thread of Run (budget.go): doubled,
// several times at once if need be, when the cost exceeds the budget for half a
// second to two, or the kernel drops packets; halved when less sampling would
// have been within 80 % of the budget for 10 s, straight to 1 when the load has
// ended. At least 1,000 sampled accesses a second remain if the traffic has them.
// What N does not change, ticks and wakeups, does not drive it.
//
// # Limits
//
// At most MaxPorts server ports are followed at once (a detector has
// 1.3 MB); requests to further ports are counted in Snapshot.PortsRefused. What
// the packages below bound is written in their doc.go files.
package pipeline
