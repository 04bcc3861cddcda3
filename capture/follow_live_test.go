//go:build cgo && linux

package capture

import (
	"errors"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hunt reads until src delivers a packet, firing one at the device before each
// read, and fails when none came within some seconds.
func hunt(t *testing.T, src Source) (p Packet) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		// The device may not be there or not ready yet.
		if g := tryGun("gun", request().bytes()); g != nil {
			g.try()
			g.close()
		}
		err := src.Next(&p)
		if err == nil {
			return p
		}
		if !errors.Is(err, ErrTimeout) {
			t.Fatal(err)
		}
		if off := time.Since(time.Unix(0, p.T)); off < -time.Second || off > time.Second {
			t.Fatalf("time of a tick is %v ago", off)
		}
	}
	t.Fatal("no packet")
	return p
}

// container is the process of another network namespace.
func container(t *testing.T) (pid int) {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd.Process.Pid
}

// idle reads n times, expecting silence.
func idle(t *testing.T, src Source, n int) {
	t.Helper()
	var p Packet
	for range n {
		if err := src.Next(&p); err != nil && !errors.Is(err, ErrTimeout) {
			t.Fatal(err)
		}
	}
}

// TestLiveFollowsInterface: whatever happens to the interface, packets are
// counted again when one of its name is back, without a restart.
func TestLiveFollowsInterface(t *testing.T) {
	again := func(t *testing.T) {
		ip(t, "link add hot type veth peer name gun")
		ip(t, "link set hot up")
		ip(t, "link set gun up")
	}
	for _, tt := range []struct {
		name     string
		away     string // commands, until the interface is lost
		back     func(t *testing.T)
		reopened uint64
	}{
		{"goes down and comes up", "link set hot down",
			func(t *testing.T) { ip(t, "link set hot up") }, 0},
		{"is deleted and made anew", "link del hot", again, 1},
		{"is renamed and named back", "link set hot down name cold",
			func(t *testing.T) { ip(t, "link set cold name hot"); ip(t, "link set hot up") }, 1},
		{"is renamed and another gets the name", "link set hot name cold",
			func(t *testing.T) { ip(t, "link set gun name cold2"); again(t) }, 1},
		{"moves to a container and a new one comes", "link set hot netns CONTAINER",
			func(t *testing.T) { ip(t, "link set gun name cold"); again(t) }, 1},
		{"comes back while it is down", "link del hot", func(t *testing.T) {
			ip(t, "link add hot type veth peer name gun")
			ip(t, "link set gun up")
			time.Sleep(30 * time.Millisecond)
			ip(t, "link set hot up")
		}, 1},
	} {
		inNamespace(t, tt.name, func(t *testing.T) {
			addVeth(t)
			var changes []InterfaceChange
			src, err := OpenLive(LiveConfig{Interface: "hot", Timeout: 20 * time.Millisecond,
				OnChange: func(c InterfaceChange) { changes = append(changes, c) }})
			if err != nil {
				t.Fatal(err)
			}
			if err := src.(Sampling).SetSampleEvery(2); err != nil {
				t.Fatal(err)
			}
			hunt(t, src)
			before := src.Stats().Interfaces[0]
			if !before.Up || before.Packets == 0 || before.Reopened != 0 || len(changes) != 0 {
				t.Errorf("at first: %+v, %v", before, changes)
			}
			ip(t, strings.ReplaceAll(tt.away, "CONTAINER", itoa(container(t))))
			for deadline := time.Now().Add(10 * time.Second); len(changes) == 0; {
				if time.Now().After(deadline) {
					t.Fatal("the loss was not noticed")
				}
				idle(t, src, 1)
			}
			if is := src.Stats().Interfaces[0]; is.Up || changes[0].Up || !errors.Is(changes[0].Err, ErrDown) {
				t.Errorf("while away: %+v, %+v", is, changes)
			}
			tt.back(t)
			p := hunt(t, src)
			if p.SampleEvery != 2 {
				t.Errorf("sampling after the return: 1 in %d, want 1 in 2", p.SampleEvery)
			}
			for deadline := time.Now().Add(5 * time.Second); len(changes) < 2 && time.Now().Before(deadline); {
				idle(t, src, 1)
			}
			is := src.Stats().Interfaces[0]
			if !is.Up || is.Reopened != tt.reopened || is.Packets <= before.Packets {
				t.Errorf("after the return: %+v, want %d reopenings", is, tt.reopened)
			}
			if len(changes) != 2 || !changes[1].Up || changes[1].Err != nil || changes[1].Reopened != (tt.reopened > 0) {
				t.Errorf("changes: %+v", changes)
			}
			src.Close()
			if err := src.Next(&p); err != io.EOF {
				t.Errorf("Next after Close: %v", err)
			}
		})
	}
}

// TestLiveNoticesReplacementUnderLoad: a handle on a renamed interface goes on
// to deliver, so the reader is never idle and must look all the same.
func TestLiveNoticesReplacementUnderLoad(t *testing.T) {
	inNamespace(t, "busy", func(t *testing.T) {
		addVeth(t)
		src, err := OpenLive(LiveConfig{Interface: "hot", Timeout: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		hunt(t, src)
		idle(t, src, 2)
		g := newGun(t, "gun", request().bytes())
		ip(t, "link set hot name cold")
		var p Packet
		got, quiet := 0, 0
		for deadline := time.Now().Add(10 * time.Second); src.Stats().Interfaces[0].Up; {
			if time.Now().After(deadline) {
				t.Fatal("the loss was not noticed")
			}
			g.fire(4)
			switch err := src.Next(&p); {
			case err == nil:
				got++
			case errors.Is(err, ErrTimeout):
				quiet++
			default:
				t.Fatal(err)
			}
		}
		if got < 10 || quiet > got {
			t.Errorf("%d packets and %d timeouts until the loss was noticed, want a busy source", got, quiet)
		}
		src.Close()
	})
}

// TestLiveAnySurvives: the device of all interfaces does not care which of them
// come and go, and is never reopened.
func TestLiveAnySurvives(t *testing.T) {
	inNamespace(t, "any", func(t *testing.T) {
		addVeth(t)
		src, err := OpenLive(LiveConfig{Timeout: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		hunt(t, src)
		ip(t, "link del hot")
		idle(t, src, 3)
		addVeth(t)
		before := src.Stats().Interfaces[0].Packets
		hunt(t, src)
		if is := src.Stats().Interfaces[0]; !is.Up || is.Reopened != 0 || is.Packets <= before {
			t.Errorf("%+v", is)
		}
		src.Close()
	})
}

// TestLiveEndsWhileAway: Stop and Close end a source whose device is gone at
// once, though it waits.
func TestLiveEndsWhileAway(t *testing.T) {
	for name, end := range map[string]func(Source){"Stop": Source.Stop, "Close": func(s Source) { s.Close() }} {
		inNamespace(t, name, func(t *testing.T) {
			addVeth(t)
			src, err := OpenLive(LiveConfig{Interface: "hot", Timeout: 100 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			ip(t, "link del hot")
			idle(t, src, 5)
			if src.Stats().Interfaces[0].Up {
				t.Error("still up")
			}
			time.AfterFunc(50*time.Millisecond, func() { end(src) })
			var p Packet
			for range 100 {
				if err = src.Next(&p); err != nil && !errors.Is(err, ErrTimeout) {
					break
				}
			}
			if err != io.EOF || src.Next(&p) != io.EOF {
				t.Errorf("Next: %v, want io.EOF, now and later", err)
			}
		})
	}
}

// TestLiveFirstOpenFails: only a source that was open once waits.
func TestLiveFirstOpenFails(t *testing.T) {
	inNamespace(t, "absent and down", func(t *testing.T) {
		if _, err := OpenLive(LiveConfig{Interface: "hot"}); !errors.Is(err, ErrNoDevice) {
			t.Errorf("absent: %v, want ErrNoDevice", err)
		}
		ip(t, "link add hot type veth peer name gun")
		if _, err := OpenLive(LiveConfig{Interface: "hot"}); !errors.Is(err, ErrDown) {
			t.Errorf("down: %v, want ErrDown", err)
		}
	})
}

// TestLiveLosesNothingWithTheInterface: what was captured before the interface
// went is still delivered, and waiting for its return is no busy loop.
func TestLiveLosesNothingWithTheInterface(t *testing.T) {
	for _, away := range []string{"link del hot", "link set hot down", "link set hot name cold"} {
		inNamespace(t, away, func(t *testing.T) {
			addVeth(t)
			src, err := OpenLive(LiveConfig{Interface: "hot", Timeout: 50 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			idle(t, src, 2)
			const packets = 1000
			newGun(t, "gun", request().bytes()).fire(packets)
			ip(t, away)
			var p Packet
			got, reads := 0, 0
			for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); reads++ {
				if err := src.Next(&p); err == nil {
					got++
				} else if !errors.Is(err, ErrTimeout) {
					t.Fatal(err)
				}
			}
			if got != packets || src.Stats().Interfaces[0].Up {
				t.Errorf("%d of %d packets, %+v", got, packets, src.Stats().Interfaces[0])
			}
			if reads-got > 200 { // 40 timeouts, and 8 times as often for the last one
				t.Errorf("Next returned %d times without a packet within 2 s", reads-got)
			}
			src.Close()
			src.Next(&p)
		})
	}
}
