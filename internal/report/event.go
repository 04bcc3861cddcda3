package report

import "time"

// EventSchema is the value of Event.Schema.
const EventSchema = "hotsniff.event/v1"

// Event is one change of the hot list. A list that is merged over nodes has
// no one window, upper bound or node: those fields are then left out, and the
// number of nodes and their advice stand there instead.
type Event struct {
	Schema            string    `json:"schema"`
	At                time.Time `json:"at"`
	Event             string    `json:"event"` // hot, cooling or gone
	Port              uint16    `json:"port"`  // 0: by hand, for any port
	Key               string    `json:"key"`
	KeyBase64         string    `json:"key_base64,omitempty"`
	Share             float64   `json:"share"`
	ShareLow          float64   `json:"share_low"`
	ShareHigh         *float64  `json:"share_high,omitempty"`
	AccessesPerSecond float64   `json:"accesses_per_second"`
	WindowSeconds     int       `json:"window_seconds,omitempty"`
	Node              string    `json:"node,omitempty"`

	Nodes  int    `json:"nodes,omitempty"` // that list the key
	Action string `json:"action,omitempty"`
	Reason string `json:"reason,omitempty"`
	TTLMs  int64  `json:"ttl_ms,omitempty"`
	Copies int    `json:"copies,omitempty"`
}
