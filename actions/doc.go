// Package actions is what the daemon does with a hot list: it advises what
// should be done with each key, publishes the list, and takes in the entries
// that people pin and ban.
//
//	figures of a key --Advise--> action, reason, ttl, copies
//	list --Publish--> [mailbox: 1 slot, latest wins] --Run--> PUBLISH hotsniff:hot
//	                                                     \--> SET hotsniff:list:<node> PX, ZADD hotsniff:nodes
//	hash hotsniff:manual --Manual.Run--> pins and bans --> merged into each list
//
// # Ownership and concurrency
//
// Publish never blocks and never allocates for the caller's sake: the list is
// put into a mailbox, and a newer list replaces one that Run has not taken
// yet. Run owns the connection, the numbering of lists and the backoff; all
// else reads plain copies (Stats, LocalAddrs) that Run stores behind atomic
// pointers. A List that was published must not be changed afterwards.
//
// # Limits and what happens at each
//
//   - at most one list each MinGap (250 ms): later changes wait for it;
//   - a list that is too large for the format loses its last entries, which
//     are the least hot ones, and Stats.Truncated counts;
//   - an attempt takes at most Timeout (1 s) a step; after a failure the next
//     one follows after 0.1 s, then twice as long each time up to MaxBackoff
//     (3 s by default, so that publishing goes on within 5 s of a recovery);
//   - the last list, the empty one, is tried once for at most a second;
//   - at most MaxManual pins and bans; further ones are counted and ignored.
//
// Redis being slow, full, gone or unwilling is never an error of the program:
// it is a counter and one log line when it begins and when it ends.
package actions
