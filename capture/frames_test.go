package capture

import "encoding/binary"

// frame builds test packets from the inside out, by hand so that it shares no
// code with what it tests.
type frame struct {
	v6       bool
	srcPort  uint16
	dstPort  uint16
	seq, ack uint32
	flags    uint8
	payload  string

	tcpOptions int    // bytes, multiple of 4
	ipOptions  int    // bytes, multiple of 4
	fragment   uint16 // flags and offset word of IPv4
	lengthZero bool   // segmentation offload
	extensions []byte // IPv6 next header numbers, in order
	vlans      []uint16
	padding    int
	link       LinkType
}

func (f frame) tcp() []byte {
	h := make([]byte, 20+f.tcpOptions)
	binary.BigEndian.PutUint16(h, f.srcPort)
	binary.BigEndian.PutUint16(h[2:], f.dstPort)
	binary.BigEndian.PutUint32(h[4:], f.seq)
	binary.BigEndian.PutUint32(h[8:], f.ack)
	h[12] = byte((20 + f.tcpOptions) / 4 << 4)
	h[13] = f.flags
	for i := range f.tcpOptions {
		h[20+i] = 1 // no-operation
	}
	return append(h, f.payload...)
}

func (f frame) ip() []byte {
	tcp := f.tcp()
	if !f.v6 {
		h := make([]byte, 20+f.ipOptions)
		h[0] = 0x40 | byte((20+f.ipOptions)/4)
		binary.BigEndian.PutUint16(h[2:], uint16(len(h)+len(tcp)))
		if f.lengthZero {
			binary.BigEndian.PutUint16(h[2:], 0)
		}
		binary.BigEndian.PutUint16(h[6:], f.fragment)
		h[8], h[9] = 64, 6
		copy(h[12:], []byte{10, 0, 0, 7})
		copy(h[16:], []byte{10, 0, 0, 1})
		for i := range f.ipOptions {
			h[20+i] = 1
		}
		return append(h, tcp...)
	}
	h := make([]byte, 40)
	h[0], h[6], h[7] = 0x60, 6, 64
	h[8], h[23] = 0xfd, 7
	h[24], h[39] = 0xfd, 1
	at := &h[6]
	var body []byte
	for _, ext := range f.extensions {
		*at = ext
		e := []byte{6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} // 16 bytes
		switch ext {
		case protoFragment:
			e = []byte{6, 0, 0, 1, 0, 0, 0, 9}
		case protoAH:
			e[1] = 2 // (2+2)*4
		}
		body = append(body, e...)
		at = &body[len(body)-len(e)]
	}
	body = append(body, tcp...)
	binary.BigEndian.PutUint16(h[4:], uint16(len(body)))
	if f.lengthZero {
		binary.BigEndian.PutUint16(h[4:], 0)
	}
	return append(h, body...)
}

func (f frame) bytes() []byte {
	ip := f.ip()
	ether := uint16(etherIPv4)
	if f.v6 {
		ether = etherIPv6
	}
	var tags []byte
	kind := ether
	for i := len(f.vlans) - 1; i >= 0; i-- {
		tag := binary.BigEndian.AppendUint16(nil, 100+uint16(i))
		tag = binary.BigEndian.AppendUint16(tag, kind)
		tags = append(tag, tags...)
		kind = f.vlans[i]
	}
	var head []byte
	switch f.link {
	case LinkTypeEthernet:
		head = binary.BigEndian.AppendUint16(make([]byte, 12), kind)
	case LinkTypeLinuxSLL:
		head = binary.BigEndian.AppendUint16(make([]byte, 14), kind)
		head[3] = 1 // ARPHRD_ETHER
	case LinkTypeLinuxSLL2:
		head = make([]byte, 20)
		binary.BigEndian.PutUint16(head, kind)
	case LinkTypeNull:
		head = []byte{2, 0, 0, 0}
		if f.v6 {
			head[0] = 30
		}
	case LinkTypeLoop:
		head = []byte{0, 0, 0, 2}
		if f.v6 {
			head[3] = 24
		}
	}
	out := append(append(head, tags...), ip...)
	return append(out, make([]byte, f.padding)...)
}

// request is a plain request frame on Ethernet.
func request() frame {
	return frame{srcPort: 40000, dstPort: 6379, seq: 1000, ack: 2000, flags: FlagACK | FlagPSH,
		payload: "*1\r\n$4\r\nPING\r\n", link: LinkTypeEthernet}
}
