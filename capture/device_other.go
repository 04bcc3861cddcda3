//go:build !linux

package capture

import "net"

// device asks the system about the interface of this name. index is 0 when
// there is none.
func device(name string) (index int, up bool, err error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return 0, false, err
	}
	for _, i := range interfaces {
		if i.Name == name {
			return i.Index, i.Flags&net.FlagUp != 0, nil
		}
	}
	return 0, false, nil
}
