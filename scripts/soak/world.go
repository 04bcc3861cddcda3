package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hotsniff/hotsniff/internal/testkit"
	"github.com/hotsniff/hotsniff/scripts/lab"
)

const (
	webAddress = "127.0.0.1:9379"
	baseURL    = "http://" + webAddress

	// startWait bounds the wait for a process to answer, stopWait that for
	// hotsniff to end: it promises two seconds.
	startWait = 10 * time.Second
	stopWait  = 5 * time.Second
)

// world is everything that runs.
type world struct {
	*settings
	dir       string
	canReload bool

	clients   *exec.Cmd
	toClients io.WriteCloser
	answers   *bufio.Reader

	redis   *exec.Cmd
	daemon  *exec.Cmd
	exited  chan struct{} // closed when the daemon has ended
	log     *watchLog
	planted []string // keys that were hot
	samples []sample
	reloads int
}

// start starts all but the load.
func (w *world) start() error {
	var err error
	if w.clients, err = lab.Other(clientsArgument, strconv.Itoa(w.rate)); err != nil {
		return err
	}
	if w.toClients, err = w.clients.StdinPipe(); err != nil {
		return err
	}
	out, err := w.clients.StdoutPipe()
	if err != nil {
		return err
	}
	w.answers = bufio.NewReader(out)
	w.clients.Stderr = os.Stderr
	if err := w.clients.Start(); err != nil {
		return err
	}
	if err := w.makeDevice(); err != nil {
		return err
	}
	if err := w.startRedis(); err != nil {
		return err
	}
	if err := w.writeConfig(goodConfig(0)); err != nil {
		return err
	}
	if err := w.startDaemon(); err != nil {
		return err
	}
	_, err = w.tell("go")
	return err
}

// tell gives the clients a command and returns their answer.
func (w *world) tell(command string) (string, error) {
	if _, err := fmt.Fprintln(w.toClients, command); err != nil {
		return "", err
	}
	line, err := w.answers.ReadString('\n')
	line = strings.TrimSpace(line)
	if err == nil && strings.HasPrefix(line, "error ") {
		err = errors.New(line[6:])
	}
	if err != nil {
		return "", fmt.Errorf("clients, %s: %w", command, err)
	}
	return line, nil
}

// makeDevice makes the pair of devices and sets both ends up.
func (w *world) makeDevice() error {
	for _, args := range []string{
		"link add " + serverDevice + " type veth peer name " + clientDevice + " netns " + strconv.Itoa(w.clients.Process.Pid),
		"addr add " + serverAddress + "/24 dev " + serverDevice,
		"link set " + serverDevice + " up",
	} {
		if err := lab.IP(args); err != nil {
			return err
		}
	}
	_, err := w.tell("device")
	return err
}

func (w *world) startRedis() error {
	w.redis = exec.Command("redis-server", "--port", strconv.Itoa(serverPort), "--bind", "0.0.0.0", "--protected-mode", "no",
		"--save", "", "--appendonly", "no", "--dir", w.dir, "--logfile", filepath.Join(w.dir, "redis.log"))
	w.redis.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := w.redis.Start(); err != nil {
		return err
	}
	return wait("redis-server", func() bool {
		line, err := testkit.Ask("127.0.0.1:"+strconv.Itoa(serverPort), "PING")
		return err == nil && line == "+PONG"
	})
}

func (w *world) stopRedis() {
	if w.redis != nil {
		w.redis.Process.Kill()
		w.redis.Wait()
	}
}

func (w *world) startDaemon() error {
	w.daemon = exec.Command(w.bin, "run", "--config.file", w.configPath(), "--interface", serverDevice, "--port", strconv.Itoa(serverPort),
		"--web.listen-address", webAddress, "--publish.redis-url", "redis://127.0.0.1:"+strconv.Itoa(serverPort), "--node", "soak")
	w.log = &watchLog{}
	w.daemon.Stderr = w.log
	w.daemon.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := w.daemon.Start(); err != nil {
		return err
	}
	w.exited = make(chan struct{})
	go func() { w.daemon.Wait(); close(w.exited) }()
	if err := wait("hotsniff", func() bool {
		_, err := lab.Scrape(baseURL)
		return err == nil || w.hasExited()
	}); err != nil || w.hasExited() {
		return errors.Join(err, fmt.Errorf("hotsniff does not run:\n%s", w.log.text()))
	}
	resp, err := http.Post(baseURL+"/-/reload", "", nil)
	if err != nil {
		return err
	}
	resp.Body.Close()
	// A build without reload would die of SIGHUP.
	w.canReload = resp.StatusCode == http.StatusOK
	return nil
}

func (w *world) hasExited() bool {
	select {
	case <-w.exited:
		return true
	default:
		return false
	}
}

// wait waits until something answers.
func wait(what string, ok func() bool) error {
	for deadline := time.Now().Add(startWait); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			return errors.New(what + " does not answer")
		}
	}
	return nil
}

func (w *world) configPath() string { return filepath.Join(w.dir, "hotsniff.yml") }

func (w *world) writeConfig(text string) error {
	return os.WriteFile(w.configPath(), []byte(text), 0o644)
}

// goodConfig returns the i-th of configurations that differ.
func goodConfig(i int) string {
	return fmt.Sprintf("rules:\n  - prefix: \"session%d:\"\n    ignore: true\n  - glob: \"item:%d*\"\n    name: items\n    share: 0.5\npinned: [\"pinned:%d\"]\n",
		i, i%10, i%3)
}

const badConfig = "rules:\n  - prefix: 5\n    shrae: lots\n"

// stop ends everything. It may be called in any state.
func (w *world) stop() {
	if w.daemon != nil && w.exited != nil {
		w.daemon.Process.Kill()
		<-w.exited
	}
	w.stopRedis()
	if w.clients != nil && w.clients.Process != nil {
		w.toClients.Close()
		w.clients.Process.Kill()
		w.clients.Wait()
	}
	lab.IP("link del " + serverDevice)
}
