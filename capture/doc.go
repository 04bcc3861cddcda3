// Package capture turns packets into the ordered bytes that clients sent.
//
//	Source ── Packet ──> Decode ── Segment ──> Assembler ── Data, Gap, End ──> Stream
//	(live or files)      (headers)             (per connection, in order)
package capture
