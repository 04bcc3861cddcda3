// Package privacy makes key names and client addresses unreadable before they
// are shown: in metrics, logs, reports, the API, the page and the terminal.
//
//	plain      user:4711:cart           user:4711:cart
//	pattern    user:4711:cart           user:*:cart
//	truncate   user:4711:cart           user:471…
//	hash       user:4711:cart           #5f1c09a7be3d2244
//	denied     user:4711:cart           (hidden)
//
// It changes what is shown, not what is detected: keys that become one name
// are judged by themselves and shown as one row (pipeline.Snapshot.Masked).
//
// Patterns find what looks like a number, an identifier or an address. A name
// of another kind ("user:alice") stays readable: whoever must be sure takes
// hash. A hash is keyed (HMAC-SHA-256, RFC 2104), since the few likely names
// of keys could otherwise be tried one by one.
//
// A Policy is safe for concurrent use and remembers at most maxRemembered
// names, in memory only.
package privacy
