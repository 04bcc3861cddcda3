//go:build cgo

package capture

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcap"
)

// stopCheckEvery is how many packets a busy reader takes between two looks at
// the stop flag. 64 packets are well under a millisecond where it matters.
const stopCheckEvery = 64

// openMu serializes opening: a handle's socket is found by comparing the
// descriptors before and after.
var openMu sync.Mutex

// livePcap is a Source over libpcap. The handle belongs to the reader goroutine:
// packets lie in memory shared with the kernel, which closing the handle unmaps,
// so another goroutine must never close it under the reader's feet. Stop and
// Close set flags; the reader looks at the one of Close before every packet and
// at the one of Stop when it waited and every stopCheckEvery packets.
type livePcap struct {
	handle  *pcap.Handle // nil after release
	name    string
	link    LinkType
	timeout time.Duration
	stats   InterfaceStats
	last    [2]uint32 // drop counters of libpcap at the last look, which wrap

	unchecked int   // packets since the last look at the flags
	drainTo   int64 // packets captured later are not wanted, 0 while running
	mine      bool  // the reader has taken the handle

	owned   atomic.Bool  // taken by the reader, or by Close when it came first
	closing atomic.Bool  // Close was called
	stopT   atomic.Int64 // wall clock of Stop, 0 before
}

// OpenLive starts a capture through libpcap. Errors can be tested for
// ErrPermission, ErrNoDevice and ErrDown; their texts say what to do.
//
// Packet.Data lies in the ring of the kernel and is valid until the next Next,
// as long as the Source is in use. After Stop, Next drains the ring: it returns
// the packets captured before Stop and then io.EOF, after about two read
// timeouts. After Close the next Next returns io.EOF, within one read timeout if
// it is waiting. The handle is released when Next returns io.EOF or a final
// error, so a reader that wants to leave should Close and call Next once more.
func OpenLive(cfg LiveConfig) (Source, error) { return openLive(cfg, true) }

// openLive is OpenLive; with useSocket false it does without the socket options
// that not every system has.
func openLive(cfg LiveConfig, useSocket bool) (Source, error) {
	cfg = cfg.withDefaults()
	handle, err := activate(cfg, useSocket)
	if err != nil {
		return nil, liveError(cfg.Interface, err)
	}
	l := &livePcap{
		handle:  handle,
		name:    cfg.Interface,
		link:    LinkType(handle.LinkType()), // 8 bits: live devices have no larger one unless asked for
		timeout: cfg.Timeout,
		stats:   InterfaceStats{Name: cfg.Interface},

		unchecked: stopCheckEvery, // the first Next looks at the flags
	}
	runtime.AddCleanup(l, (*pcap.Handle).Close, handle) // for a reader that went away without io.EOF
	return l, nil
}

// withDefaults fills in the zero fields.
func (c LiveConfig) withDefaults() LiveConfig {
	if c.Interface == "" {
		c.Interface = "any"
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

// activate opens the device and installs the filter, once and before anything
// is read: replacing it later loses packets without counting them.
func activate(cfg LiveConfig, useSocket bool) (*pcap.Handle, error) {
	openMu.Lock()
	defer openMu.Unlock()
	inactive, err := pcap.NewInactiveHandle(cfg.Interface)
	if err != nil {
		return nil, err
	}
	defer inactive.CleanUp()
	if err := errors.Join(
		inactive.SetSnapLen(cfg.Snaplen),
		inactive.SetPromisc(false), // only what this host takes part in matters
		inactive.SetTimeout(cfg.Timeout),
		inactive.SetBufferSize(cfg.RingBytes),
	); err != nil {
		return nil, err
	}
	before, fdErr := packetSockets()
	handle, err := inactive.Activate()
	if err != nil {
		return nil, err
	}
	fd := -1
	if fdErr == nil {
		fd, fdErr = newPacketSocket(before)
	}
	if err := setFilter(handle, cfg, fd, useSocket && fdErr == nil); err != nil {
		handle.Close()
		return nil, fmt.Errorf("set filter: %w", err)
	}
	return handle, nil
}

// inboundFilter is the fallback when the kernel cannot be told to leave
// outgoing packets out of the capture.
func inboundFilter(expression string) string { return "inbound and (" + expression + ")" }

// setFilter installs the filter and restricts the capture to the direction that
// is wanted, in the cheapest way that the system offers.
func setFilter(handle *pcap.Handle, cfg LiveConfig, fd int, haveFD bool) error {
	ethernet := handle.LinkType() == layers.LinkTypeEthernet
	base := Filter(cfg.Ports, Both, ethernet)
	if cfg.Direction == Both || cfg.Direction == In && haveFD && ignoreOutgoing(fd) == nil {
		return handle.SetBPFFilter(base)
	}
	narrow := inboundFilter(base)
	if cfg.Direction == Out {
		narrow = outboundFilter(base)
	}
	// libpcap filters once more in user space what reached the ring before its
	// filter did, and there an Ethernet packet's direction is not known: it
	// would reject all of the first block. So it gets the filter without
	// direction and the kernel the one with. Cooked packets hold the direction.
	if ethernet && haveFD {
		if err := handle.SetBPFFilter(base); err != nil {
			return err
		}
		code, err := handle.CompileBPFFilter(narrow)
		if err == nil {
			err = attachFilter(fd, instructions(code))
		}
		if err == nil {
			return nil
		}
	}
	return handle.SetBPFFilter(narrow)
}

func instructions(code []pcap.BPFInstruction) []bpfInstruction {
	out := make([]bpfInstruction, len(code))
	for i, c := range code {
		out[i] = bpfInstruction{c.Code, c.Jt, c.Jf, c.K}
	}
	return out
}

// liveError names the cause. libpcap's binding hides its codes, so the texts
// are compared.
func liveError(device string, err error) error {
	text := err.Error()
	cause := err
	switch {
	case strings.Contains(text, "Permission") || strings.Contains(text, "not permitted"):
		cause = ErrPermission
	case strings.Contains(text, "No Such Device") || strings.Contains(text, "No such device"):
		cause = ErrNoDevice
	case strings.Contains(text, "Interface Not Up") || strings.Contains(text, "is down") ||
		strings.Contains(text, "went down") || strings.Contains(text, "disappeared"):
		cause = ErrDown
	}
	return fmt.Errorf("capture on %s: %w", device, cause)
}

// Next implements Source.
func (l *livePcap) Next(p *Packet) error {
	// Loading a flag that nobody writes is an ordinary load; draining also needs
	// the clock, so that is looked at less often.
	if l.unchecked++; l.unchecked >= stopCheckEvery || l.closing.Load() {
		if l.ended() {
			return l.release(io.EOF)
		}
	}
	data, info, err := l.handle.ZeroCopyReadPacketData()
	if err != nil {
		return l.nothing(p, err)
	}
	p.Data = data
	p.WireLen = info.Length
	p.T = info.Timestamp.UnixNano()
	p.Link = l.link
	p.Interface = 0
	if l.drainTo != 0 && p.T >= l.drainTo {
		return l.release(io.EOF)
	}
	l.stats.Packets++
	l.stats.Bytes += uint64(info.Length)
	return nil
}

// nothing handles a read that brought no packet.
func (l *livePcap) nothing(p *Packet, err error) error {
	if err != pcap.NextErrorTimeoutExpired {
		if err != io.EOF {
			err = liveError(l.name, errors.Join(err, l.handle.Error()))
		}
		return l.release(err)
	}
	if l.ended() {
		return l.release(io.EOF)
	}
	now := time.Now().UnixNano()
	// The kernel hands a block over at the latest one timeout after its first
	// packet, so what came before Stop is here after one timeout and a bit.
	if l.drainTo != 0 && now-l.drainTo > int64(l.timeout+l.timeout/4) {
		return l.release(io.EOF)
	}
	*p = Packet{T: now, Link: l.link}
	return ErrTimeout
}

// acquire takes the handle for the reader. It returns false when there is none
// any more.
func (l *livePcap) acquire() bool {
	if !l.mine {
		l.mine = l.owned.CompareAndSwap(false, true)
	}
	return l.mine && l.handle != nil
}

// ended looks at the flags and reports whether the source is closed or has
// drained for as long as it may.
func (l *livePcap) ended() bool {
	l.unchecked = 0
	if !l.acquire() || l.closing.Load() {
		return true
	}
	// Time stamps may come from another clock than Stop's: never drain longer.
	const longestDrain = int64(time.Second)
	l.drainTo = l.stopT.Load()
	return l.drainTo != 0 && time.Now().UnixNano()-l.drainTo > longestDrain+2*int64(l.timeout)
}

// release closes the handle and makes every later Next return io.EOF. Reader
// goroutine only.
func (l *livePcap) release(err error) error {
	if l.acquire() {
		l.readDrops()
		l.handle.Close()
		l.handle = nil
	}
	l.unchecked = stopCheckEvery
	return err
}

// Stats implements Source.
func (l *livePcap) Stats() Stats {
	if l.acquire() {
		l.readDrops()
	}
	return Stats{Interfaces: []InterfaceStats{l.stats}}
}

// readDrops adds what libpcap's counters gained. They are 32 bits wide.
func (l *livePcap) readDrops() {
	s, err := l.handle.Stats()
	if err != nil {
		return
	}
	now := [2]uint32{uint32(s.PacketsDropped), uint32(s.PacketsIfDropped)}
	l.stats.Dropped += uint64(now[0] - l.last[0])
	l.stats.InterfaceDropped += uint64(now[1] - l.last[1])
	l.last = now
}

// Stop implements Source.
func (l *livePcap) Stop() { l.stopT.CompareAndSwap(0, time.Now().UnixNano()) }

// Close implements Source.
func (l *livePcap) Close() error {
	if l.closing.Swap(true) {
		return nil
	}
	if l.owned.CompareAndSwap(false, true) {
		l.handle.Close() // no reader yet, and there will be none
	}
	return nil
}
