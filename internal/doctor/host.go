package doctor

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/hotsniff/hotsniff/capture"
)

// Capability says whether this process may capture. proc is /proc.
func Capability(proc string) Finding {
	const name = "capability"
	text, err := readProc(proc, "self", "status")
	if err != nil {
		return warn(name, "mount /proc", "cannot be read: %v", err)
	}
	s, err := parseStatus(text)
	if err != nil {
		return warn(name, "", "%v", err)
	}
	has := func(mask uint64) bool { return mask>>capNetRaw&1 == 1 }
	switch {
	case has(s.effective):
		return ok(name, "CAP_NET_RAW is effective, uid %d", s.uid)
	case has(s.permitted):
		return fail(name, "setcap cap_net_raw+ep $(which hotsniff): with e", "CAP_NET_RAW is permitted but not effective, uid %d", s.uid)
	case !has(s.bounding):
		return fail(name, "add NET_RAW to the container's capabilities, or CAP_NET_RAW to CapabilityBoundingSet= and AmbientCapabilities= of the unit",
			"CAP_NET_RAW is not even in the bounding set, uid %d", s.uid)
	}
	return fail(name, "run as root, or once: setcap cap_net_raw+ep $(which hotsniff)", "no CAP_NET_RAW, uid %d", s.uid)
}

// Device says whether the interface is there and up. "any" takes all.
func Device(device string) Finding {
	const name = "device"
	all, err := net.Interfaces()
	if err != nil {
		return warn(name, "", "the interfaces cannot be listed: %v", err)
	}
	var up []string
	for _, i := range all {
		if i.Flags&net.FlagUp != 0 {
			up = append(up, i.Name)
		}
		if i.Name == device && i.Flags&net.FlagUp == 0 {
			return fail(name, "ip link set "+device+" up; a running hotsniff waits for it", "%s is down", device)
		}
		if i.Name == device {
			return ok(name, "%s is up, MTU %d", device, i.MTU)
		}
	}
	if device == "any" && len(up) > 0 {
		return ok(name, "any: %s", list(up))
	}
	if device == "any" {
		return fail(name, "ip link set lo up, or run in the network namespace of Redis", "no interface is up")
	}
	return fail(name, "choose one with --interface, or any", "there is no %s, but %s", device, list(up))
}

// maxListed bounds what one line lists: a host of containers has hundreds of
// devices.
const maxListed = 8

func list(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	if n := len(names) - maxListed; n > 0 {
		return strings.Join(names[:maxListed], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ")
}

// Server says whether something listens on the ports, here, and whether there
// are servers on unix sockets, which nobody can see. away: the capture is on the
// clients' host, where no server is expected.
func Server(proc string, ports *capture.PortSet, away bool) Finding {
	const name = "server"
	open, err := listeners(proc)
	if err != nil {
		return warn(name, "mount /proc", "cannot be read: %v", err)
	}
	var here []string
	for _, l := range open {
		if ports.Has(l.addr.Port()) {
			here = append(here, l.addr.String())
		}
	}
	var hidden []string
	if text, err := readProc(proc, "net", "unix"); err == nil {
		hidden = parseUnix(text)
	}
	switch {
	case len(here) > 0 && len(hidden) > 0:
		return warn(name, "let the clients that matter use TCP", "listens on %s, and on %s, whose requests nobody can see", list(here), list(hidden))
	case len(here) > 0:
		return ok(name, "listens on %s", list(here))
	case len(hidden) > 0:
		return fail(name, "set port in redis.conf and let clients use TCP", "nothing listens on port %s; a server does on the unix socket %s, which cannot be captured", ports, list(hidden))
	case away:
		return ok(name, "nothing listens on port %s here, as expected on a host of clients", ports)
	}
	return warn(name, "set --port; in a container share the network namespace of Redis; on a host of clients use --capture.direction out",
		"nothing listens on port %s in this network namespace", ports)
}

// Metrics says whether the addresses of the metrics can be listened on, and
// who holds those that cannot.
func Metrics(proc string, addresses ...string) (out []Finding) {
	for _, a := range addresses {
		out = append(out, metricsAddress(proc, a))
	}
	return out
}

func metricsAddress(proc, address string) Finding {
	const name = "metrics-port"
	l, err := net.Listen("tcp", address)
	if err == nil {
		l.Close()
		return ok(name, "%s is free", address)
	}
	const fix = "choose another with --web.listen-address"
	if !errors.Is(err, syscall.EADDRINUSE) {
		return fail(name, fix, "%v", err)
	}
	p, known := holder(proc, address)
	switch {
	case !known:
		return fail(name, fix, "%s is in use, by a process that is not ours to see", address)
	case p.name == "hotsniff":
		return ok(name, "%s is served by hotsniff, pid %d", address, p.pid)
	}
	return fail(name, fix+", or stop it", "%s is in use by %s, pid %d", address, p.name, p.pid)
}

// holder finds who listens on the port of address.
func holder(proc, address string) (process, bool) {
	want, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return process{}, false
	}
	all, err := listeners(proc)
	if err != nil {
		return process{}, false
	}
	for _, l := range all {
		mine := want.IP == nil || want.IP.IsUnspecified() || l.addr.Addr().IsUnspecified() || l.addr.Addr().String() == want.IP.String()
		if int(l.addr.Port()) == want.Port && mine {
			if p, found := owner(proc, l.inode); found {
				return p, true
			}
		}
	}
	return process{}, false
}
