//go:build cgo

package capture

import (
	"bytes"
	"io"
	"testing"

	"github.com/google/gopacket/pcap"
)

// TestReadAgreesWithLibpcap reads real captures with both.
func TestReadAgreesWithLibpcap(t *testing.T) {
	for _, path := range captures(t) {
		theirs, err := pcap.OpenOffline(path)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := OpenFiles([]string{path}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var p Packet
		for i := 0; ; i++ {
			data, info, theirErr := theirs.ZeroCopyReadPacketData()
			ourErr := ours.Next(&p)
			if theirErr == io.EOF && ourErr == io.EOF {
				break
			}
			if theirErr != nil || ourErr != nil {
				t.Errorf("%s, packet %d: %v, libpcap %v", path, i, ourErr, theirErr)
				break
			}
			if !bytes.Equal(p.Data, data) || p.WireLen != info.Length || p.T != info.Timestamp.UnixNano() ||
				uint8(p.Link) != uint8(theirs.LinkType()) && p.Link != LinkTypeRaw {
				t.Errorf("%s, packet %d: %d of %d bytes at %d, libpcap %+v", path, i, len(p.Data), p.WireLen, p.T, info)
				break
			}
		}
		theirs.Close()
		ours.Close()
	}
}
