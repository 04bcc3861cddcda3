//go:build cgo

package capture

import (
	"strconv"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcap"
)

// TestFilterSelects compiles the expression with libpcap and runs it over
// frames of both families, with and without VLAN tags.
func TestFilterSelects(t *testing.T) {
	ports, err := ParsePorts("6379,7000-7005")
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(f *frame)) frame { f := request(); change(&f); return f }
	tests := []struct {
		name string
		f    frame
		want bool
	}{
		{"a request", request(), true},
		{"first port of the range", with(func(f *frame) { f.dstPort = 7000 }), true},
		{"last port of the range", with(func(f *frame) { f.dstPort = 7005 }), true},
		{"port below the range", with(func(f *frame) { f.dstPort = 6999 }), false},
		{"port above the range", with(func(f *frame) { f.dstPort = 7006 }), false},
		{"a reply", with(func(f *frame) { f.srcPort, f.dstPort = 6379, 40000 }), false},
		{"a pure acknowledgement", with(func(f *frame) { f.payload = "" }), false},
		{"a pure acknowledgement with options", with(func(f *frame) { f.payload, f.tcpOptions = "", 12 }), false},
		{"one byte behind options", with(func(f *frame) { f.payload, f.tcpOptions, f.ipOptions = "x", 12, 8 }), true},
		{"acknowledgement behind IP options", with(func(f *frame) { f.payload, f.ipOptions = "", 8 }), false},
		{"a padded acknowledgement", with(func(f *frame) { f.payload, f.padding = "", 6 }), false},
		{"SYN", with(func(f *frame) { f.payload, f.flags = "", FlagSYN }), true},
		{"FIN", with(func(f *frame) { f.payload, f.flags = "", FlagFIN|FlagACK }), true},
		{"RST", with(func(f *frame) { f.payload, f.flags = "", FlagRST }), true},
		{"IP length 0", with(func(f *frame) { f.lengthZero = true }), true},
	}
	for _, link := range []LinkType{LinkTypeEthernet, LinkTypeLinuxSLL, LinkTypeRawBSD} {
		for _, tags := range [][]uint16{nil, {etherVLAN}, {etherQinQ, etherVLAN}} {
			if tags != nil && link != LinkTypeEthernet {
				continue
			}
			bpf, err := pcap.NewBPF(layers.LinkType(link), DefaultSnaplen, Filter(ports, In, link == LinkTypeEthernet))
			if err != nil {
				t.Fatal(err)
			}
			for _, v6 := range []bool{false, true} {
				for _, tt := range tests {
					f := tt.f
					f.link, f.vlans, f.v6 = link, tags, v6
					if v6 {
						f.ipOptions = 0
					}
					b := f.bytes()
					got := bpf.Matches(gopacket.CaptureInfo{CaptureLength: len(b), Length: len(b)}, b)
					if got != tt.want {
						t.Errorf("link %d, %d tags, IPv6 %v: %s: accepted %v, want %v", link, len(tags), v6, tt.name, got, tt.want)
					}
				}
			}
		}
	}
}

func TestFilterAcceptsIPv6Extensions(t *testing.T) {
	ports, _ := ParsePorts("6379")
	bpf, err := pcap.NewBPF(layers.LinkTypeEthernet, DefaultSnaplen, Filter(ports, In, true))
	if err != nil {
		t.Fatal(err)
	}
	for _, ext := range []byte{protoHopByHop, protoRouting, protoDestOpts, protoAH, protoFragment} {
		f := request()
		f.v6, f.extensions = true, []byte{ext}
		b := f.bytes()
		if !bpf.Matches(gopacket.CaptureInfo{CaptureLength: len(b), Length: len(b)}, b) {
			t.Errorf("extension header %d is not let in", ext)
		}
	}
}

// TestFilterSize: a scattered port list stays within what the kernel takes and
// still lets every port in.
func TestFilterSize(t *testing.T) {
	list := "1000"
	for port := 1003; port < 1003+3*900; port += 3 {
		list += "," + itoa(port)
	}
	ports, err := ParsePorts(list)
	if err != nil {
		t.Fatal(err)
	}
	expression := Filter(ports, In, true)
	code, err := pcap.CompileBPFFilter(layers.LinkTypeEthernet, DefaultSnaplen, expression)
	if err != nil {
		t.Fatal(err)
	}
	if len(code) > 2000 { // net.core.optmem_max of 20 KiB holds about 2500
		t.Errorf("%d instructions", len(code))
	}
	bpf, err := pcap.NewBPF(layers.LinkTypeEthernet, DefaultSnaplen, expression)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range ports.Ports() {
		f := request()
		f.dstPort = port
		b := f.bytes()
		if !bpf.Matches(gopacket.CaptureInfo{CaptureLength: len(b), Length: len(b)}, b) {
			t.Fatalf("port %d is not let in", port)
		}
	}
}

func TestFilterDirectionsCompile(t *testing.T) {
	ports, _ := ParsePorts("6379")
	for _, direction := range []Direction{In, Out, Both} {
		expression := Filter(ports, direction, false)
		for _, e := range []string{expression, inboundFilter(expression)} {
			if _, err := pcap.CompileBPFFilter(layers.LinkTypeLinuxSLL, DefaultSnaplen, e); err != nil {
				t.Errorf("%v: %v", direction, err)
			}
		}
	}
	code, err := pcap.CompileBPFFilter(layers.LinkTypeEthernet, DefaultSnaplen, Filter(ports, In, true))
	t.Logf("one port, with VLAN: %d instructions, %v", len(code), err)
	code, err = pcap.CompileBPFFilter(layers.LinkTypeEthernet, DefaultSnaplen, Filter(ports, In, false))
	t.Logf("one port: %d instructions, %v", len(code), err)
}

// TestFilterAgreesWithDecode runs the filter over real captures: what it lets
// in is what Decode calls a request segment.
func TestFilterAgreesWithDecode(t *testing.T) {
	ports, _ := ParsePorts("6379-6390,7000-7010")
	for _, path := range captures(t) {
		src, err := OpenFiles([]string{path}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var bpf *pcap.BPF
		var p Packet
		var s Segment
		for src.Next(&p) == nil {
			if p.Link != LinkTypeEthernet && p.Link != LinkTypeLinuxSLL {
				break // what live devices have
			}
			if bpf == nil {
				bpf, err = pcap.NewBPF(layers.LinkType(p.Link), 262144, Filter(ports, In, p.Link == LinkTypeEthernet))
				if err != nil {
					t.Fatal(err)
				}
			}
			if Decode(&p, &s) != Decoded {
				continue
			}
			want := ports.Has(s.DstPort) && (s.WireLen > 0 || s.Flags&(FlagFIN|FlagSYN|FlagRST) != 0)
			got := bpf.Matches(gopacket.CaptureInfo{CaptureLength: len(p.Data), Length: p.WireLen}, p.Data)
			if got != want && len(p.Data) >= 100 {
				t.Fatalf("%s: accepted %v, want %v: %+v", path, got, want, s)
			}
		}
		src.Close()
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
