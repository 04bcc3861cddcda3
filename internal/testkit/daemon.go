package testkit

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Daemon is a running `hotsniff run` on the loopback that this process started.
type Daemon struct {
	URL string // of its API

	cmd  *exec.Cmd
	log  bytes.Buffer
	done chan struct{} // closed when the process has ended
	once sync.Once
}

// StartDaemon starts the program bin on the port with further arguments and
// waits until it has a first report. Stop or Kill ends it.
func StartDaemon(bin string, port int, args ...string) (*Daemon, error) {
	web, err := FreePort()
	if err != nil {
		return nil, err
	}
	addr := "127.0.0.1:" + strconv.Itoa(web)
	d := &Daemon{URL: "http://" + addr, done: make(chan struct{})}
	base := []string{"run", "--interface", "lo", "--port", strconv.Itoa(port), "--web.listen-address", addr}
	d.cmd = exec.Command(bin, append(base, args...)...)
	d.cmd.Stderr = &d.log
	// It goes with this process, even when that is killed.
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { d.cmd.Wait(); close(d.done) }()
	deadline := time.Now().Add(startTimeout)
	for !d.answers() {
		select {
		case <-d.done:
			return nil, fmt.Errorf("hotsniff ended at once:\n%s", strings.TrimSpace(d.log.String()))
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			d.Kill()
			return nil, errors.New("hotsniff does not answer:\n" + d.log.String())
		}
	}
	return d, nil
}

func (d *Daemon) answers() bool {
	resp, err := http.Get(d.URL + "/api/v1/hotkeys")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Stop asks the daemon to end and returns its log and how long that took.
func (d *Daemon) Stop() (log string, took time.Duration) {
	begin := time.Now()
	d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.done:
	case <-time.After(5 * time.Second):
	}
	took = time.Since(begin)
	d.Kill()
	return d.log.String(), took
}

// Kill ends the daemon at once. It may be called twice.
func (d *Daemon) Kill() {
	d.once.Do(func() {
		d.cmd.Process.Kill()
		<-d.done
	})
}

// PID returns the daemon's process number.
func (d *Daemon) PID() int { return d.cmd.Process.Pid }

// State returns what the ended process used.
func (d *Daemon) State() *os.ProcessState { return d.cmd.ProcessState }
