//go:build !cgo

package capture

// OpenLive returns ErrNoLive: this build has no libpcap. Files can be read.
func OpenLive(LiveConfig) (Source, error) { return nil, ErrNoLive }

// LibpcapVersion names the libpcap that is linked in, which is none.
func LibpcapVersion() string { return "no libpcap" }
