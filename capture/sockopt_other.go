//go:build cgo && !linux

package capture

import "errors"

var errNoPacketSocket = errors.New("no packet sockets on this system")

func packetSockets() (map[int]bool, error)      { return nil, errNoPacketSocket }
func newPacketSocket(map[int]bool) (int, error) { return -1, errNoPacketSocket }
func ignoreOutgoing(int) error                  { return errNoPacketSocket }

func attachFilter(int, []bpfInstruction) error     { return errNoPacketSocket }
func attachedFilter(int) ([]bpfInstruction, error) { return nil, errNoPacketSocket }
func boundInterface(int) (int, error)              { return 0, errNoPacketSocket }
