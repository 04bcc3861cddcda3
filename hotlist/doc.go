// Package hotlist is what an application imports to act on the hot keys that
// hotsniff finds: it reads the published list and takes the load of exactly
// those keys off Redis.
//
//	hotsniff --PUBLISH--> channel hotsniff:hot --> Watch --> IsHot(key)
//	    \---SET PX-----> hotsniff:list:<node> ---/   |
//	                                                 +--> Cache, Hook, Replicate, Aggregate, Limit
//
// The message is a complete list of one node, JSON, schema hotsniff.list/v1:
//
//	{"schema":"hotsniff.list/v1","node":"redis-1","epoch":1767225600000,"seq":42,
//	 "at":1767225661000,"ttl_ms":15000,"window_seconds":60,"sample_every":1,
//	 "accesses_per_second":102000,
//	 "keys":[{"key":"product:1","port":6379,"state":"hot","share":0.26,
//	   "share_low":0.257,"accesses_per_second":26100,"write_ratio":0.01,
//	   "clients":372,"since":1767225660000,"action":"localize",
//	   "reason":"read-hot","ttl_ms":2000,"copies":8}]}
//
// docs/PROTOCOL.md describes it for other languages.
//
// Which of them to use: Cache where a function loads a value, Hook where an
// existing client shall serve hot keys with no change to its callers, Replicate
// for keys that are read more than one node can serve or whose values are too
// large to keep, Aggregate for counters that are written all the time, Limit
// for a client that runs wild. All of them act on listed keys only, let go when
// a key leaves the list, and pass everything else through. Tracking beside Cache
// or Hook ends a copy when anybody writes the key, where its TTL is too long to
// wait for.
//
// # Ownership and concurrency
//
// A List and everything in it is never changed once it was decoded or handed
// over; it may be shared freely. A Watcher is safe for any number of
// goroutines. Callbacks run one after the other on the watcher's goroutine and
// must not block for long: while one runs, the list does not change.
//
// # Limits
//
// Whoever may publish on the channel can send anything, so everything that is
// read is bounded, and at each bound something is counted:
//
//   - a message is at most MaxListBytes and names at most MaxKeys keys of at
//     most MaxKeyBytes each; a message beyond that is refused as a whole;
//   - numbers outside their range are brought to the nearest end of it;
//   - lists are merged at most every 20 ms, whatever the number of messages;
//   - a watcher follows at most MaxNodes nodes and keeps at most
//     MaxWatchBytes of lists; lists of further nodes are refused;
//   - Cache and Hook hold at most so many entries and bytes (1,000 and 64 MiB);
//     the least used ones go first;
//   - Tracking tracks 100 keys; copies of further ones end by their TTL;
//   - a list that nobody renews is dropped after its ttl.
//
// The package depends on the standard library and go-redis (and otter, x/time
// and x/sync for Cache and Limit), never on packet capture, cgo or Prometheus.
package hotlist
