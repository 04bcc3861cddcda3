package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/internal/pipeline"
)

const (
	// muchDuplicated is the part of segments that came twice from which it
	// is worth a word; retransmissions are far below it.
	muchDuplicated = 0.05
	// fewDuplicated: less of them prove nothing.
	fewDuplicated = 10
	// mostLag is how old every packet may be when it is read before the
	// clock is suspected: the ring is read each 0.1 s.
	mostLag = 2 * time.Second
	// mostAhead is how far in the future a packet may be: clocks of the same
	// machine do not differ.
	mostAhead = 100 * time.Millisecond
	// mostDrift is how far packet time and the monotonic clock may part.
	mostDrift = time.Second
)

// Traffic captures for wait, as the daemon would, and says what arrived.
// Findings: traffic, encryption, duplicates, clock.
func Traffic(ctx context.Context, live capture.LiveConfig, engine pipeline.Config, wait time.Duration) []Finding {
	src, err := capture.OpenLive(live)
	if err != nil {
		return []Finding{fail("traffic", "mend what is said above", "cannot capture: %v", err)}
	}
	defer src.Close()
	obs := &observer{Source: src}
	e, err := pipeline.New(engine, obs)
	if err != nil {
		return []Finding{fail("traffic", "", "%v", err)}
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if err := e.Run(ctx); err != nil {
		return []Finding{fail("traffic", "is the interface gone?", "the capture ended: %v", err)}
	}
	s := e.Latest()
	return []Finding{traffic(s, live, wait), encryption(s), duplicates(obs, "/sys"), clock(obs)}
}

// requests sums up what was decoded on all ports.
func requests(s *pipeline.Snapshot) (n uint64) {
	for i := range s.Ports {
		n += s.Ports[i].Requests
	}
	return n
}

func traffic(s *pipeline.Snapshot, live capture.LiveConfig, wait time.Duration) Finding {
	const name = "traffic"
	n, packets := requests(s), s.Verdicts[capture.Decoded]
	var dropped uint64
	for _, i := range s.Capture.Interfaces {
		dropped += i.Dropped + i.InterfaceDropped
	}
	switch {
	case n > 0 && dropped > 0:
		return warn(name, "raise --capture.ring", "%d requests in %v, but the kernel dropped %d packets", n, wait, dropped)
	case n > 0:
		return ok(name, "%d requests of %d connections in %v", n, s.Assembler.Opened, wait)
	case s.Decoder.Encrypted > 0:
		return fail(name, "see encryption", "%d packets in %v, no request that can be read", packets, wait)
	case s.Decoder.Replication > 0:
		return warn(name, "capture where the clients connect", "only replication in %v, no request of a client", wait)
	case packets > 0:
		return warn(name, "wait longer (--wait); a connection that is TLS since before the capture cannot be told from one that is silent",
			"%d packets in %v, none of which begins a request", packets, wait)
	}
	fix := "is it the right --port and --interface? on a host of clients use --capture.direction out"
	if live.Direction == capture.Out {
		fix = "is it the right --port and --interface? on the host of Redis use --capture.direction in"
	}
	return warn(name, fix, "nothing arrived in %v", wait)
}

func encryption(s *pipeline.Snapshot) Finding {
	const name = "encryption"
	tls, all := s.Decoder.Encrypted, s.Assembler.Opened
	switch {
	case tls == 0 && requests(s) == 0:
		return ok(name, "no TLS seen, nor anything else")
	case tls == 0:
		return ok(name, "no TLS on %d connections", all)
	case requests(s) == 0:
		return fail(name, "capture behind what ends TLS (stunnel, envoy), or let local clients use the plain port",
			"all requests are encrypted: %d of %d connections are TLS", tls, all)
	}
	return warn(name, "what TLS carries is not counted; shares are of the rest", "%d of %d connections are TLS", tls, all)
}

func duplicates(o *observer, sys string) Finding {
	const name = "duplicates"
	share := float64(o.twice) / float64(max(o.segments, 1))
	if o.twice < fewDuplicated || share < muchDuplicated {
		return ok(name, "%d of %d segments came twice", o.twice, o.segments)
	}
	return warn(name, "name the device that the clients come through with --interface; requests are counted once all the same, at twice the cost",
		"%.0f %% of the segments came twice: they cross several devices (%s)", 100*share, list(virtual(sys)))
}

// virtual names the bridges and the devices that are ports of one.
func virtual(sys string) (names []string) {
	for _, what := range []string{"bridge", "brport"} {
		dirs, _ := filepath.Glob(filepath.Join(sys, "class", "net", "*", what))
		for _, d := range dirs {
			names = append(names, filepath.Base(filepath.Dir(d)))
		}
	}
	if len(names) == 0 {
		entries, _ := os.ReadDir(filepath.Join(sys, "class", "net"))
		for _, e := range entries {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

func clock(o *observer) Finding {
	const name = "clock"
	if o.packets == 0 {
		return ok(name, "no packet to compare it with")
	}
	drift := (o.lastT - o.firstT) - o.lastSeen.Sub(o.firstSeen)
	var faults []string
	switch {
	case o.leastLag < -mostAhead:
		faults = append(faults, fmt.Sprintf("packets are stamped %v in the future", -o.leastLag.Round(time.Millisecond)))
	case o.leastLag > mostLag:
		faults = append(faults, fmt.Sprintf("packets are stamped %v in the past", o.leastLag.Round(time.Millisecond)))
	}
	if drift.Abs() > mostDrift {
		faults = append(faults, fmt.Sprintf("it was set by %v meanwhile", drift.Round(time.Millisecond)))
	}
	if len(faults) > 0 {
		return warn(name, "let chrony or ntpd slew the clock; a capture survives it, windows may be off for a minute", "%s", strings.Join(faults, "; "))
	}
	return ok(name, "packets are at least %v old when they are read", max(o.leastLag, 0).Round(time.Microsecond))
}
