package capture

import (
	"fmt"
	"time"
)

// Direction says which requests a live capture sees, relative to this host.
// Replies are never captured live.
type Direction uint8

// Directions of a live capture.
const (
	In   Direction = iota // requests that arrive: this host runs the server
	Out                   // requests that leave: this host runs the clients
	Both                  // both of these
)

var directionNames = [...]string{"in", "out", "both"}

// String returns the name that ParseDirection reads.
func (d Direction) String() string {
	if int(d) < len(directionNames) {
		return directionNames[d]
	}
	return "invalid"
}

// ParseDirection reads "in", "out" or "both".
func ParseDirection(text string) (Direction, error) {
	for i, name := range directionNames {
		if text == name {
			return Direction(i), nil
		}
	}
	return 0, fmt.Errorf("parse direction %q: want in, out or both", text)
}

// LiveConfig configures OpenLive; zero fields mean the default.
type LiveConfig struct {
	Interface string        // a device name or "any", the default; followed by name
	Ports     *PortSet      // server ports; nil is 6379
	RingBytes int           // DefaultRingBytes
	Snaplen   int           // bytes kept of a packet, DefaultSnaplen
	Timeout   time.Duration // longest wait of Next, DefaultTimeout
	Direction Direction
	// OnChange, when set, is called once when the interface is lost or goes
	// down and once when it is back, on the goroutine that calls Next.
	OnChange func(InterfaceChange)
}

// InterfaceChange says that the interface of a live capture went or came back.
type InterfaceChange struct {
	T        int64  // wall clock, nanoseconds since the epoch
	Name     string // the device
	Up       bool   // packets are captured again
	Reopened bool   // a new handle reads it: it had vanished or was another device since
	Err      error  // why it is not up: ErrDown or ErrNoDevice inside
}

// anyDevice is the name under which libpcap captures on all interfaces.
const anyDevice = "any"

// withDefaults fills in the zero fields.
func (c LiveConfig) withDefaults() LiveConfig {
	if c.Interface == "" {
		c.Interface = anyDevice
	}
	if c.Ports == nil {
		c.Ports, _ = ParsePorts("6379")
	}
	if c.RingBytes <= 0 {
		c.RingBytes = DefaultRingBytes
	}
	if c.Snaplen <= 0 {
		c.Snaplen = DefaultSnaplen
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	c.Timeout = max(c.Timeout, time.Millisecond) // libpcap counts in milliseconds, and 0 would block for ever
	return c
}

const (
	// DefaultRingBytes rides out a stall of 100 ms at 500,000 packets a second
	// without a drop, as long as packets are of 500 bytes or less (measured;
	// 8 MiB loses 1 %). The kernel packs what it captured of a packet and about
	// 100 bytes more; full segments of 1,500 bytes at this rate need 80 MiB, or
	// a snap length of 512.
	DefaultRingBytes = 32 << 20
	// DefaultSnaplen holds a pipeline of 400 small requests in one frame and
	// keeps most of large values out of the ring. At 512 bytes 31 % of the
	// requests of a load of pipelines of 16 were cut off, unseen.
	DefaultSnaplen = 16 << 10
	// DefaultTimeout is how long the kernel collects packets before it wakes
	// the reader. Immediate mode costs 2 to 5 times the CPU a packet.
	DefaultTimeout = 100 * time.Millisecond
)
