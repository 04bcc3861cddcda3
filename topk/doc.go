// Package topk finds hot keys: the keys that take an outsized share of the
// accesses of one Redis port, with the error of every number.
//
//	Access ──► hash ──► table ──────────► tick (125 ms) ──► Events: hot, cooling, gone
//	                │   512 sets x 8 keys     │ fast window, 5 s
//	                │   a count per slice     │ slow window, 60 s (each second)
//	                ├─► distinct sketches     ▼
//	                └─► details of 200 keys   Snapshot
//
// One access of one key is the unit: MGET of 100 keys is 100 accesses, and the
// shares of all keys sum to 1. A Detector keeps 4,096 keys by Space-Saving within
// sets of eight, each with its counts per slice of time, so a window is a sum of
// columns and slides. A worked example, at 1,000 accesses/s:
//
//	d := topk.New(topk.Config{})
//	d.Add(&topk.Access{T: t, Key: key, Read: true, Bytes: 40, Client: addr}) // a million times
//	d.Advance(now)                                                           // each 250 ms
//	for _, e := range d.Events(nil) { … }                                    // user:1 is hot
//	s := d.Snapshot()                                                        // share 0.26 in [0.256, 0.264]
//
// A key with 260 of 1,000 accesses a second that had 3 before is hot when its
// 5-second count is so far above 2 % of 5,000 that chance does it once in 30,000
// tries (Wilson lower bound at z = 4, corrected for the skew of small counts):
// at 143 accesses, 0.5 s after the step, and is reported at the end of that tick.
//
// # What the numbers mean
//
// Accesses of a key were surely its own: they were counted while it had an entry.
// A key that has had its entry for the whole window is exact. Otherwise
// AccessesError bounds what it may have had before: the accesses of the window
// that its set of the table counted for keys no longer in it. ShareLow and
// ShareHigh add the sampling error: if traffic went on like this for ever, the
// share would lie between them in 98 of 100 cases. Counts are scaled by the
// sampling in force when they were made (Horvitz-Thompson), and the interval uses
// the effective sample size, in which accesses that came with one sampled packet
// count by how much they hang together (BeginPacket). Details (writes, bytes, commands, clients) are kept
// in twelfths of the window; the oldest one counts for the part of it that is
// still in the window. Clients are those of one to two windows.
//
// # The hot list
//
//	          lower bound >= threshold, >= 10 accesses,
//	          not one burst: a tenth outside the largest slice
//	(none) ────────────────────────────────────────────────► hot ◄─┐ qualifies
//	  ▲                                                       │    │ again
//	  │ 60 s as cooling                  60 s as hot, and the ▼    │
//	  └─────────────────────────────── share < half ───────► cooling
//
// The fast window needs 50 sampled accesses/s and a second of traffic since the
// start; the slow one 5 s. A full slow window with fewer than 3,000 accesses uses
// z = 3.09 for 2.33. Probable keys reach the threshold with the estimate only and
// are not on the list. Pinned and banned keys lie over this: they are judged all
// the while.
//
// # Ownership and concurrency
//
// An Access and its key belong to the caller; key bytes are copied only for keys
// that may be reported. Snapshots and Events own all they hold and never change.
// A Detector or Counter is used by one goroutine, its Snapshots by any. Nothing
// here reads the clock; time is that of the packets.
//
// # Limits, and what happens at each
//
//   - 4,096 keys: the least of eight makes room (Counters.Evicted); errors above.
//   - 640 key texts, 128 bytes each, 16 of them up to 1,024: the largest keys have
//     them; others are counted but cannot be named until they rise. Of keys over
//     1,024 bytes the prefix is known (Truncated) and the length tells them apart.
//   - 200 keys with details: 160 by accesses, 40 by bytes, and those that reach half
//     of the threshold. A key that got them late is scaled up (Extrapolated).
//   - 16 commands a key (OtherCommands); 8 clients for the heaviest; about 74,000
//     distinct clients a key, where the count stays.
//   - 100 listed keys: a larger one displaces the least (Counters.Overflow).
//   - 250 rules, 1,000 manual entries, 4,096 undelivered Events (oldest dropped).
//   - 2^32 scaled accesses in a window: more are not counted (Counters.Saturated).
//   - The clock: up to 2 s back is disorder; more moves the origin (ClockSteps). A
//     jump ahead walks until window and list are empty, then skips.
//
// Memory of a Detector: table 1.60 MB, details up to 0.75 MB (made as keys
// appear), sketches 0.23 MB, and 0.11 MB once packets were sampled, whatever
// arrives; nothing before the first access.
// For a whole file as one window see Counter.
package topk
