// Package resp decodes what clients send to a Redis server: it turns the bytes
// of each connection into requests, and says which of their arguments are keys.
//
//	client bytes   *3 | $3 SET | $6 user:1 | $5000 vvvv...       GET user:1\r\n
//	                       |         |          |                     |
//	               name ---+         |          +--- skipped by count |
//	               table: key is 1 --+                                |
//	Request        {Command: SET, Keys: [user:1], Bytes: 5034}        |
//	               {Command: GET, Keys: [user:1], Bytes: 12, Inline} -+
//
// A connection is fed in order, in pieces of any size:
//
//	d.Open(&c, syn)                  // its start was seen, or not
//	d.Feed(&c, payload, turn)        // client bytes
//	d.Skip(&c, n)                    // client bytes that were not captured
//	d.Reply(&c, payload, wireLength) // server bytes, while it wants them
//	d.Acked(&c, n)                   // what is known of them otherwise
//	d.Close(&c)
//	for d.Next(&r) { ... }           // after each of these
//
// # What counts
//
// A request counts when it has ended, or when a hole in the capture took its
// end after its last key. One that the end of the connection cuts off does not
// count. The server checks the number of arguments first, and so does the
// decoder: a request with a wrong number has no keys. Commands outside the
// table are requests of CommandUnknown without keys.
//
// Framing is that of redis-server, not that of the specification: the two
// bytes behind an argument and the byte behind a carriage return are not
// looked at, "*0" and "*-1" are no requests, text that does not begin with "*"
// is an inline command. After what the server takes for a protocol error the
// rest of the connection is ignored, and the Reason is counted.
//
// # Joining in the middle
//
// Values may hold the text of requests, so a connection whose start was not
// seen has to prove that it was joined at a request: see resync.go. Until then
// its requests are held back; they come out with FlagHeld or not at all.
//
// # Ownership and concurrency
//
// A Decoder and all its Conns belong to one goroutine. The fed bytes are used
// until Next returns false. Request.Keys and the bytes of keys, which are
// slices of the fed bytes where possible, are valid until the next call of
// Next, Feed or any other method. Nothing but keys leaves the decoder: no
// value, script or password.
//
// # Cost
//
// No call allocates in a steady state. A request that lies whole in the fed
// bytes is scanned once; one that goes on keeps its state in a slot of a
// pool. Values that go on are counted down without being looked at.
//
// # Limits
//
// Nothing is allocated for a length that is only announced.
//
//	a key                  1024 bytes are kept, with its full length
//	keys of one Request    256; more come in parts, see FlagPart
//	an inline command      96 KiB, then ReasonInlineTooLong
//	unfinished requests    16,384 and 8 MiB; the least recently used is given
//	                       up, its connection waits for a turn: PartialsEvicted
//	connections on trial   16,384 and 8 MiB of held requests; the least recently
//	                       used loses its requests: HoldsEvicted
//	held of a connection   64 KiB; requests beyond are dropped: HeldDropped
//	extra rows             4096
package resp

//go:generate go run ../scripts/gen_keys -root ..
