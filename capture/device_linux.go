package capture

import "golang.org/x/sys/unix"

// device asks the kernel about the interface of this name. index is 0 when
// there is none. It costs four system calls, whatever the number of interfaces;
// listing them all would take milliseconds on a host of many containers.
func device(name string) (index int, up bool, err error) {
	request, err := unix.NewIfreq(name)
	if err != nil {
		return 0, false, err // a name that cannot exist
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, false, err
	}
	defer unix.Close(fd)
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, request); err != nil {
		return 0, false, absent(err)
	}
	index = int(request.Uint32())
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, request); err != nil {
		return 0, false, absent(err) // it went between the two calls
	}
	return index, request.Uint16()&unix.IFF_UP != 0, nil
}

func absent(err error) error {
	if err == unix.ENODEV || err == unix.ENXIO {
		return nil
	}
	return err
}
