// Package capture turns packets into the bytes that clients sent, in order, per
// connection, and says where bytes are missing.
//
//	Source ── Packet ──> Decode ── Segment ──> Assembler ──> Stream: Open, Data, Gap, Reply, End
//	(live or files)      (headers)             (flow table, order)
//
// A reading loop, with h a Stream:
//
//	a := capture.NewAssembler[state](capture.AssemblerConfig{Ports: ports}, h)
//	var p capture.Packet
//	var s capture.Segment
//	for {
//		err := src.Next(&p)
//		switch {
//		case err == nil:
//			if v := capture.Decode(&p, &s); v == capture.Decoded {
//				a.Add(&s)
//			}
//		case errors.Is(err, capture.ErrTimeout):
//			a.Tick(p.T)
//		default: // io.EOF or a fault
//			a.Flush(p.T)
//			return err
//		}
//	}
//
// # Example of the order of calls
//
// A client sends a request in three segments; the second is lost on the way to
// us, the third comes before it is sent again, and then both halves are sent
// again in one:
//
//	SYN 99           nothing: a connection without data is no flow yet
//	100 "*1\r\n"     Open(syn), Data "*1\r\n" (Turn)
//	108 "PING\r\n"   nothing: four bytes are missing
//	104 "$4\r\nPING\r\n"  Data "$4\r\n", Data "PING\r\n"
//	114 FIN          End(FIN)
//
// Had the bytes never come, Gap(4) would have stood in place of "$4\r\n".
//
// # Ownership and concurrency
//
// Everything belongs to one goroutine; only Stop and Close of a Source may be
// called from others. Nothing here locks or allocates per packet. Packet.Data is
// valid until the next Next, and so are Segment.Payload and the bytes of Data
// and Reply during their call. Time is the packet's; the clock is read by the
// live source only, on a timeout and while it stops.
//
// # Direction
//
// A segment to a server port is the client's, one from a server port the
// server's. When both ports are server ports the SYN decides, else the flow that
// exists, else whether the payload begins like a reply. A live capture holds
// requests only; files mostly hold both directions, and everything works in
// both: what the server acknowledged then makes Turn exact and tells a hole that
// the capture has from one that the server has too.
//
// # A live capture that goes on
//
// The source follows its interface by name. Whatever makes it silent (down,
// deleted, renamed, moved to a container, its name given to another device),
// Next returns ErrTimeout at the usual pace and the source opens the name again
// as soon as an interface has it that is up. It asks for that once a second, by
// packet time while packets come, so that no packet costs a system call. The
// counters go on, and so does the sampling.
//
// # Sampling in the kernel
//
// SetSampleEvery(n) replaces the kernel's filter with one that first draws a
// random number and keeps 1 packet in n. Packet.SampleEvery says of each packet
// what held when it was taken: those that waited in the ring keep the old
// number. Packets of the few hundred microseconds of the change itself carry the
// smaller one. All kinds of packets are thinned out alike (see sampledProgram for
// why SYN and FIN are no exception), so connections have holes everywhere and
// sampled packets are to be decoded one by one.
//
// # Start and end of a flow
//
// SYNs are remembered in a table of fixed size (32,768; SYN floods touch nothing
// else) and become a flow with the first data. A connection that is first seen
// in the middle begins at its first data segment; what precedes it and comes
// late is dropped. A SYN never touches a live flow: only data that follows the
// new SYN's number ends it (Reused), so late, repeated and forged SYNs do no
// harm. Sequence numbers further away than 16 MiB are another connection too. A
// closed flow lingers for about two seconds to absorb late duplicates.
//
// # Holes
//
// Bytes behind a hole wait in pages. A hole is given up, and Gap is called,
//
//   - when the server acknowledged it and 8 packets of the connection or 50 ms
//     have passed (the capture lost it),
//   - without server packets, after 64 packets of the connection or 200 ms,
//   - with server packets that do not acknowledge it, after 2 s (the client will
//     send it again),
//   - when a limit of the buffer is reached, at the end of the flow and at Flush.
//
// The wait begins when the first bytes behind the hole came and anew whenever
// missing bytes come. Overlapping copies: the first one counts. Bytes that the
// snap length cut are a Gap at once.
//
// # Limits, and what happens there
//
//	flows              262,144 of 56 + 5..10 bytes; then a flow of a random sample of 16 goes: a closed
//	                   one, else one that sent data only once, else the one that was
//	                   silent longest (Evicted); so a flood displaces itself
//	silence            30 minutes (Idle)
//	waiting bytes      256 pages of 1 KiB a flow, 16 MiB in all; then holes are given up (LimitGaps)
//	waiting flows      4,096; then the oldest hole is given up
//	frame              1 MiB; longer ones are Malformed, their segments Oversized
//	VLAN tags          4; more are NotIP
//	IPv6 extensions    8; more are Malformed
//	record in a file   1 MiB; larger ones are damage (ErrCorrupt)
//	pcapng interfaces  4,096 a section; more are damage
//	files              256 at once
//	ports              1,024; the kernel filter holds 64 ranges exactly
//	sampling           1 packet in 1,024 at most; 128 changes within a read timeout, then an error
//	ring               32 MiB: 50,000 packets of up to 500 bytes; then the kernel drops (Dropped)
//
// IP fragments are counted (Fragment), not put together: TCP avoids them.
//
// # Why the file reader is our own
//
// gopacket's pcapgo allocates by lengths that the file declares (up to 4 GiB),
// divides by zero on a crafted time resolution, cuts link types to 8 bits (276
// becomes 20), does not know where in the file it is, and builds a time.Time a
// packet. Packets as slices of our own read buffer cost a third of it and need
// no further dependency. libpcap is the oracle in the tests.
package capture
