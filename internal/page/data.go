package page

import (
	"encoding/json"

	"github.com/hotsniff/hotsniff/internal/report"
)

// Schema names the format of what /api/v1/events sends. It is for the page
// that came with the same program, not for others: those have the report.
const Schema = "hotsniff.page/v1"

// data is one event.
type data struct {
	Schema  string         `json:"schema"`
	Report  *report.Report `json:"report"`
	Status  *Status        `json:"status"` // null in a file
	Details []detail       `json:"details"`
}

// detail is what the page shows of a key beside its report, in the order of
// its keys.
type detail struct {
	History        []uint32 `json:"history,omitempty"` // accesses per second, oldest first
	ReplyEstimated bool     `json:"reply_estimated,omitempty"`
}

// encode returns a report as JSON that may stand inside a script element: <, >
// and & are escaped.
func encode(r *report.Report, st *Status) ([]byte, error) {
	d := data{Schema: Schema, Report: r, Status: st, Details: make([]detail, len(r.Keys))}
	for i := range r.Keys {
		d.Details[i] = detail{r.Keys[i].History, r.Keys[i].ReplyEstimated}
	}
	return json.Marshal(&d)
}
