package capture

import (
	"errors"
	"fmt"
)

// Source delivers packets: a live handle or one or more files. One goroutine
// uses it, except Stop and Close, which any goroutine may call.
type Source interface {
	// Next fills p. It returns nil; ErrTimeout (live only: nothing arrived
	// within the read timeout, and p.T is then the wall clock); io.EOF after
	// the last packet or after Stop or Close; or an error. Files return a
	// *FileError for each file that cannot be read to its end and go on with
	// the others when Next is called again; every other error is final.
	Next(p *Packet) error
	// Stats returns the counters so far. Reader goroutine only; after io.EOF
	// and after Close it returns the last values.
	Stats() Stats
	// Stop asks for the end: Next still returns the packets that arrived
	// before the call and then io.EOF. Any goroutine, any number of times.
	Stop()
	// Close gives up at once: it unblocks Next, which returns io.EOF, and
	// releases everything. Any goroutine, any number of times.
	Close() error
}

// MaxSampleEvery is the coarsest sampling: 1 packet in 1024. At a million
// packets a second a thousand remain, and fewer would save nothing more.
const MaxSampleEvery = 1024

// Sampling is implemented by live sources that can keep 1 packet in n in the
// kernel, where a packet that is not kept costs neither a copy nor the reader.
type Sampling interface {
	// SetSampleEvery changes n: 1, 2, 4 ... MaxSampleEvery. No packet is lost
	// by it. Packets that were taken before and still wait keep their old
	// Packet.SampleEvery. Reader goroutine only. ErrNoSampling when the system
	// cannot; n is then 1.
	SetSampleEvery(n int) error
}

// Stats are the counters of a Source.
type Stats struct {
	Interfaces []InterfaceStats // index is Packet.Interface; owned by the caller
	FileBytes  int64            // bytes of files consumed so far
	FileSize   int64            // total size of the files, 0 when unknown or live
}

// InterfaceStats are the counters of one interface or file.
type InterfaceStats struct {
	Name             string // device or file name
	Packets          uint64 // packets returned by Next
	Bytes            uint64 // their length on the wire
	Dropped          uint64 // lost for want of buffer space, as far as is known
	InterfaceDropped uint64 // lost in the device or its driver

	// Live sources only. The counters above go on over reopenings.
	Up       bool   // the interface is there and up; when it was last looked at, within a second
	Reopened uint64 // times that it was opened again after it had vanished or been replaced
}

// Errors of sources. Test with errors.Is.
var (
	// ErrTimeout is returned by Next of a live source when no packet arrived
	// within the read timeout. It is the tick of an idle source, not a fault.
	ErrTimeout = errors.New("capture: no packet within the timeout")
	// ErrNoLive is returned by OpenLive in a build without libpcap.
	ErrNoLive = errors.New("capture: this build has no live capture (built with CGO_ENABLED=0)")
	// ErrPermission is returned by OpenLive when the process may not capture.
	// Its text says how to mend that.
	ErrPermission = errors.New("capture: not allowed to capture: run as root, or grant the right with " +
		"'setcap cap_net_raw+ep' on the binary, or use the systemd unit (AmbientCapabilities=CAP_NET_RAW)")
	// ErrNoDevice is returned by OpenLive when the interface does not exist yet.
	ErrNoDevice = errors.New("capture: no such interface")
	// ErrNoSampling is returned by SetSampleEvery where the kernel cannot
	// sample or its socket cannot be reached.
	ErrNoSampling = errors.New("capture: the kernel cannot sample packets here")
	// ErrDown is returned by OpenLive when the interface is down. A source that
	// is open waits for its interface instead: see OpenLive.
	ErrDown = errors.New("capture: interface is down or gone")
)

// Reasons inside a FileError. Test with errors.Is.
var (
	ErrTruncated = errors.New("truncated") // the file ends inside a record
	ErrCorrupt   = errors.New("damaged")   // a length or field cannot be right
	ErrFormat    = errors.New("not a pcap or pcapng file")
)

// FileError says where and why a file could not be read to its end. All
// packets before Offset have been delivered.
type FileError struct {
	Path   string
	Offset int64  // byte offset of the record or block that failed
	Err    error  // ErrTruncated, ErrCorrupt, ErrFormat or the error of the operating system
	Detail string // what was expected, may be empty
}

// Error returns one line with path, reason and byte offset.
func (e *FileError) Error() string {
	text := fmt.Sprintf("read %s: %v at byte %d", e.Path, e.Err, e.Offset)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Unwrap returns the reason.
func (e *FileError) Unwrap() error { return e.Err }
