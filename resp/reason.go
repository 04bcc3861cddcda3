package resp

// Reason says why the bytes of a connection stopped being decoded. It is
// counted, never logged: see Stats.Errors. "Need more bytes" is not a Reason.
type Reason uint8

// The reasons, in the order of Stats.Errors.
const (
	// ReasonNone is the zero value: nothing went wrong.
	ReasonNone Reason = iota
	// ReasonArrayCount is a "*" header that is no number or above 2^31-1.
	ReasonArrayCount
	// ReasonBulkLength is a "$" header that is no number, negative or above
	// 512 MiB.
	ReasonBulkLength
	// ReasonExpectedBulk is an argument that does not start with "$".
	ReasonExpectedBulk
	// ReasonInlineTooLong is an inline command without an end of line.
	ReasonInlineTooLong
	// ReasonUnbalancedQuotes is an inline command with an open quote or with
	// text right after a closing one.
	ReasonUnbalancedQuotes
	// ReasonNulByte is a NUL before the end of an inline command: the server
	// never finds the end of the line and the connection stalls.
	ReasonNulByte
	// ReasonHTTP is a first word POST or "Host:": the server closes.
	ReasonHTTP
	// ReasonDesync is text that no client sends, on a connection that was
	// joined in the middle: the place where decoding began was no start.
	ReasonDesync
	// NumReasons is the number of reasons.
	NumReasons
)

var reasonNames = [NumReasons]string{
	ReasonNone:             "none",
	ReasonArrayCount:       "array_count",
	ReasonBulkLength:       "bulk_length",
	ReasonExpectedBulk:     "expected_bulk",
	ReasonInlineTooLong:    "inline_too_long",
	ReasonUnbalancedQuotes: "unbalanced_quotes",
	ReasonNulByte:          "nul_byte",
	ReasonHTTP:             "http",
	ReasonDesync:           "desync",
}

// String returns the name used as a label: lower case, underscores.
func (r Reason) String() string {
	if r >= NumReasons {
		return "invalid"
	}
	return reasonNames[r]
}
