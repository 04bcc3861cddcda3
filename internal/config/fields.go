package config

// Field documents one field of the lists that stand in the file alone.
type Field struct{ Name, Help string }

// RuleFields documents the fields of an entry under `rules:`.
var RuleFields = []Field{
	{"exact", "The key itself. One of these five is needed; of several rules that match a key the longest pattern counts."},
	{"prefix", "Keys that begin with this."},
	{"suffix", "Keys that end with this."},
	{"contains", "Keys in which this occurs."},
	{"glob", "Keys that match this pattern: `*`, `?`, `[a-z]`, `[^a]` and `\\`, as for the command KEYS."},
	{"name", "Name in reports and metrics."},
	{"group", "Rules of one group share one `hotsniff_group_share_ratio`; without it the name is the group."},
	{"share", "From which share these keys are hot, above 0 and at most 1, in place of `threshold`."},
	{"min_rate", "Accesses a second that such a key must have as well."},
	{"bytes_share", "From which share of request and reply bytes such a key is hot too, above 0 and at most 1."},
	{"kind", "`read`, `write` or `any`: what counts towards `share` and `min_rate`."},
	{"ignore", "`true`: never listed and never shown. The accesses still count for the port."},
	{"action", "Advice that goes along on the list: `localize`, `replicate`, `aggregate`, `limit` or `none`."},
	{"ttl", "Advice: how long an application may keep the value, a duration."},
	{"copies", "Advice for `replicate`: how many copies, at least 2."},
}

// ManualFields documents the fields of an entry under `pinned:`; one under
// `banned:` has the first four.
var ManualFields = []Field{
	{"key", "The key. An entry that is no mapping is a key by itself."},
	{"key_base64", "The key in base64, when it is not text."},
	{"from", "When it begins to hold, as in `2026-11-27T08:00:00+01:00`."},
	{"until", "When it ends."},
	{"action", "As in a rule."},
	{"ttl", "As in a rule."},
	{"copies", "As in a rule."},
}

// RewriteFields documents the fields of an entry under `privacy.rewrite:`.
var RewriteFields = []Field{
	{"match", "Regular expression (RE2) of what is not to be shown of a key."},
	{"to", "What is shown instead; `$1` is the first group. Rewrites come before `privacy.keys`, in their order."},
}

const bannedFieldCount = 4

func names(fields []Field) []string {
	var out []string
	for _, f := range fields {
		out = append(out, f.Name)
	}
	return out
}
