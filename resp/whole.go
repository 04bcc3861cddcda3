package resp

// whole decodes a request that lies completely in b, from the "*" at b[p] on,
// and returns the index behind it. It returns 0, having changed nothing that
// reset does not mend, when the request goes on behind b or is not plain.
func (d *Decoder) whole(r *Request, b []byte, p int) int {
	argc, q := size(b, p+1)
	if q == 0 || argc == 0 {
		return 0
	}
	var (
		id     CommandID
		flags  RequestFlags
		cmd    *command
		nkeys  int
		next   int // next argument of interest
		single bool
		sub    bool // argument 1 completes the name
	)
	for i := 0; i < argc; i++ {
		if q >= len(b) || b[q] != '$' {
			return 0
		}
		var n int
		if q+3 < len(b) && b[q+2] == '\r' && b[q+1]-'0' <= 9 {
			n, q = int(b[q+1]-'0'), q+4
		} else if n, q = size(b, q+1); q == 0 {
			return 0
		}
		end := q + n
		if end+2 > len(b) {
			return 0
		}
		if i == next {
			if i == 0 {
				id = d.t.find(b, q, n, CommandUnknown)
				cmd = &d.t.commands[id]
				sub = cmd.container && argc > 1
				if next = 1; !sub {
					next, single, flags = d.locate(cmd, argc)
				}
			} else if sub {
				sub = false
				if s := d.t.find(b, q, n, id); s != CommandUnknown {
					id = s
					cmd = &d.t.commands[id]
				}
				next, single, flags = d.locate(cmd, argc)
			}
			if i == next {
				key := b[q:min(end, q+MaxKeyBytes)]
				if single {
					d.keys[0] = Key{Bytes: key, Len: int64(n), Access: cmd.access}
					nkeys, next = 1, noArg
				} else {
					if d.nkeys == maxBatch {
						return 0
					}
					d.argument(cmd, int32(i), int32(argc), key, int64(n))
					nkeys, next = d.nkeys, int(d.f.x.next)
				}
			}
		}
		q = end + 2
	}
	r.Command = id
	r.Keys = d.keys[:nkeys]
	r.Bytes = int64(q - p)
	r.Args = int64(argc)
	r.Unseen = 0
	r.Flags = flags
	return q
}

// locate prepares the search for the keys of a request of argc arguments and
// returns the first argument of interest. single: it is the only key.
func (d *Decoder) locate(cmd *command, argc int) (next int, single bool, flags RequestFlags) {
	if !cmd.fits(int32(argc)) {
		return noArg, false, FlagWrongArity
	}
	if cmd.only > 0 {
		// Arity alone does not promise the argument for rows from a file.
		return int(cmd.only), true, 0
	}
	if len(cmd.specs) == 0 {
		return noArg, false, 0
	}
	d.nkeys = 0
	d.off = 0
	d.f.x.begin(cmd, int32(argc))
	return int(d.f.x.next), false, 0
}
