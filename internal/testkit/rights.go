package testkit

import "golang.org/x/sys/unix"

// CanCapture reports whether this process may open packet sockets.
func CanCapture() bool {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}
