//go:build cgo

package capture

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
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

// livePcap is the engine over libpcap: one handle on one device. Stop and Close
// set flags; it looks at the one of Close before every packet and at the one of
// Stop when it waited and every stopCheckEvery packets.
type livePcap struct {
	handle  *pcap.Handle
	fd      int              // libpcap's packet socket, -1 when it was not found
	program []bpfInstruction // of the kernel when it keeps every packet; nil when it cannot be replaced
	bound   int              // number of the interface, 0 for all
	name    string
	link    LinkType
	timeout time.Duration
	end     *ending
	stats   *InterfaceStats
	last    pcap.Stats // libpcap's counters at the last look
	history sampleHistory

	unchecked int   // packets since the last look at the flags
	drainTo   int64 // packets captured later are not wanted, 0 while running
}

// OpenLive starts a capture through libpcap. Errors can be tested for
// ErrPermission, ErrNoDevice and ErrDown; their texts say what to do.
//
// The interface is followed by its name. When it goes down, vanishes, is
// renamed or replaced, Next returns ErrTimeout at the usual pace until an
// interface of that name is up again, which is then opened within about a
// second: no restart is needed. InterfaceStats tell, and LiveConfig.OnChange.
// What an interface captured before it went is still delivered.
//
// The Source implements Sampling.
//
// Packet.Data lies in the ring of the kernel and is valid until the next Next,
// as long as the Source is in use. After Stop, Next drains the ring: it returns
// the packets captured before Stop and then io.EOF, after about two read
// timeouts. After Close the next Next returns io.EOF, within one read timeout if
// it is waiting. The handle is released when Next returns io.EOF or a final
// error, so a reader that wants to leave should Close and call Next once more.
func OpenLive(cfg LiveConfig) (Source, error) {
	f, err := openLive(cfg, socketUse{socket: true, ignoreOutgoing: true})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// socketUse says what of libpcap's socket may be used. Not every system lets it
// be found, and not every kernel has the option.
type socketUse struct{ socket, ignoreOutgoing bool }

func openLive(cfg LiveConfig, use socketUse) (*follower, error) {
	return follow(cfg.withDefaults(), func(f *follower) (liveEngine, error) {
		return openPcap(f.cfg, use, &f.end, &f.stats)
	})
}

// openPcap opens the device; the counters go on in stats.
func openPcap(cfg LiveConfig, use socketUse, end *ending, stats *InterfaceStats) (liveEngine, error) {
	handle, fd, err := activate(cfg, use)
	if err != nil {
		return nil, liveError(cfg.Interface, err)
	}
	l := &livePcap{
		handle:  handle,
		fd:      fd,
		name:    cfg.Interface,
		link:    LinkType(handle.LinkType()), // 8 bits: live devices have no larger one unless asked for
		timeout: cfg.Timeout,
		end:     end,
		stats:   stats,
		history: newSampleHistory(),

		unchecked: stopCheckEvery, // the first Next looks at the flags
	}
	if fd >= 0 {
		l.program, _ = attachedFilter(fd) // without it there is no sampling
		l.bound, _ = boundInterface(fd)
	} else if cfg.Interface != anyDevice {
		l.bound, _, _ = device(cfg.Interface)
	}
	runtime.AddCleanup(l, (*pcap.Handle).Close, handle) // for a reader that went away without io.EOF
	return l, nil
}

// activate opens the device and installs the filter, once and before anything
// is read: replacing it later loses packets without counting them.
// fd is libpcap's socket, or -1.
func activate(cfg LiveConfig, use socketUse) (handle *pcap.Handle, fd int, err error) {
	openMu.Lock()
	defer openMu.Unlock()
	inactive, err := pcap.NewInactiveHandle(cfg.Interface)
	if err != nil {
		return nil, -1, err
	}
	defer inactive.CleanUp()
	if err := errors.Join(
		inactive.SetSnapLen(cfg.Snaplen),
		inactive.SetPromisc(false), // only what this host takes part in matters
		inactive.SetTimeout(cfg.Timeout),
		inactive.SetBufferSize(cfg.RingBytes),
	); err != nil {
		return nil, -1, err
	}
	before, fdErr := packetSockets()
	if handle, err = inactive.Activate(); err != nil {
		return nil, -1, err
	}
	fd = -1
	if fdErr == nil && use.socket {
		if fd, fdErr = newPacketSocket(before); fdErr != nil {
			fd = -1
		}
	}
	if err := setFilter(handle, cfg, fd, use.ignoreOutgoing); err != nil {
		handle.Close()
		return nil, -1, fmt.Errorf("set filter: %w", err)
	}
	return handle, fd, nil
}

// inboundFilter is the fallback when the kernel cannot be told to leave
// outgoing packets out of the capture.
func inboundFilter(expression string) string { return "inbound and (" + expression + ")" }

// setFilter installs the filter and restricts the capture to the direction that
// is wanted, in the cheapest way that the system offers.
func setFilter(handle *pcap.Handle, cfg LiveConfig, fd int, ignore bool) error {
	ethernet := handle.LinkType() == layers.LinkTypeEthernet
	base := Filter(cfg.Ports, Both, ethernet)
	if cfg.Direction == Both || cfg.Direction == In && ignore && fd >= 0 && ignoreOutgoing(fd) == nil {
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
	if ethernet && fd >= 0 {
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

// next implements liveEngine.
func (l *livePcap) next(p *Packet) error {
	// Loading a flag that nobody writes is an ordinary load; draining also needs
	// the clock, so that is looked at less often.
	if l.unchecked++; l.unchecked >= stopCheckEvery || l.end.closing.Load() {
		if l.ended() {
			return io.EOF
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
		return io.EOF
	}
	if p.T >= l.history.next {
		l.history.pass(p.T)
	}
	p.SampleEvery = l.history.every
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
		if l.drainTo == 0 || !isAway(err) {
			return err
		}
		time.Sleep(l.timeout / 8) // the last block of a device that went comes within a timeout; polling does not wait
	}
	if l.ended() {
		return io.EOF
	}
	now := time.Now().UnixNano()
	if l.drainTo != 0 && now-l.drainTo > l.ringDelay() {
		return io.EOF
	}
	l.history.settle(now, l.ringDelay())
	*p = Packet{T: now, Link: l.link}
	return ErrTimeout
}

// ringDelay is how long after its capture a packet may still come when the ring
// is empty: the kernel hands a block over at the latest one timeout after its
// first packet, and a bit.
func (l *livePcap) ringDelay() int64 { return int64(l.timeout + l.timeout/4) }

// ended looks at the flags and reports whether the source is closed or has
// drained for as long as it may.
func (l *livePcap) ended() bool {
	l.unchecked = 0
	if l.end.closing.Load() {
		return true
	}
	// Time stamps may come from another clock than Stop's: never drain longer.
	const longestDrain = int64(time.Second)
	if t := l.end.stopT.Load(); t != 0 {
		l.drainTo = t
	}
	return l.drainTo != 0 && time.Now().UnixNano()-l.drainTo > longestDrain+2*int64(l.timeout)
}

// leave implements liveEngine.
func (l *livePcap) leave(t int64) { l.drainTo = t }

// setSampleEvery implements liveEngine: it replaces the program in the kernel.
// libpcap knows nothing of it and keeps the program without sampling for its
// own use: its interpreter has no random numbers and would reject everything,
// and pcap_setfilter loses packets on a live handle without counting them.
func (l *livePcap) setSampleEvery(n int) error {
	if l.program == nil {
		return ErrNoSampling
	}
	if n == l.history.latest() {
		return nil
	}
	if l.history.full() {
		return fmt.Errorf("sample 1 packet in %d: %d changes are still under way", n, maxSampleChanges/2)
	}
	from := time.Now().UnixNano()
	if err := attachFilter(l.fd, sampledProgram(l.program, n)); err != nil {
		return fmt.Errorf("sample 1 packet in %d: %w", n, err)
	}
	l.history.changed(from, time.Now().UnixNano(), n)
	return nil
}

// count adds what libpcap's counters gained. They are 32 bits wide.
func (l *livePcap) count() {
	s, err := l.handle.Stats()
	if err != nil {
		return
	}
	l.stats.Dropped += uint64(uint32(s.PacketsDropped) - uint32(l.last.PacketsDropped))
	l.stats.InterfaceDropped += uint64(uint32(s.PacketsIfDropped) - uint32(l.last.PacketsIfDropped))
	l.last = *s
}

func (l *livePcap) index() int { return l.bound }

func (l *livePcap) close() { l.handle.Close() }

// LibpcapVersion names the libpcap that is linked in.
func LibpcapVersion() string { return pcap.Version() }
