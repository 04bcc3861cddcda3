package testkit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrNoRedis is returned by StartRedis where no redis-server is installed.
var ErrNoRedis = errors.New("redis-server is not installed (scripts/setup.sh installs it)")

// startTimeout bounds the wait for a server to answer PING.
const startTimeout = 10 * time.Second

// Redis is a redis-server that this process started.
type Redis struct {
	Port int
	cmd  *exec.Cmd
	dir  string
	done chan struct{} // closed when the process has ended
}

// FreePort returns a loopback TCP port that was free a moment ago.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// StartRedis starts redis-server without persistence on a free loopback port,
// in a directory of its own, and waits until it answers. args are added to its
// command line. Stop ends it.
func StartRedis(args ...string) (*Redis, error) {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, ErrNoRedis
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "hotsniff-redis-")
	if err != nil {
		return nil, err
	}
	base := []string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--protected-mode", "no",
		"--dir", dir, "--logfile", dir + "/redis.log"}
	r := &Redis{Port: port, dir: dir, done: make(chan struct{})}
	r.cmd = exec.Command(bin, append(base, args...)...)
	// The server goes with this process, even when that is killed.
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := r.cmd.Start(); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	go func() { r.cmd.Wait(); close(r.done) }()
	if err := r.waitReady(); err != nil {
		log, _ := os.ReadFile(dir + "/redis.log")
		r.Stop()
		return nil, fmt.Errorf("redis-server on port %d: %w\n%s", port, err, log)
	}
	return r, nil
}

// Addr returns the server's address.
func (r *Redis) Addr() string { return "127.0.0.1:" + strconv.Itoa(r.Port) }

// PID returns the server's process number.
func (r *Redis) PID() int { return r.cmd.Process.Pid }

// Stop ends the server and removes its directory. It may be called twice.
func (r *Redis) Stop() {
	r.cmd.Process.Kill()
	<-r.done
	os.RemoveAll(r.dir)
}

func (r *Redis) waitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		line, err := Ask(r.Addr(), "PING")
		if err == nil && line == "+PONG" {
			return nil
		}
		select {
		case <-r.done:
			return errors.New("ended at once")
		case <-ctx.Done():
			return fmt.Errorf("does not answer PING: %q, %w", line, errors.Join(err, ctx.Err()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Ask sends one command on a connection of its own and returns the first line
// of the answer without its CRLF.
func Ask(addr string, args ...string) (string, error) {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Write(AppendCommand(nil, args...)); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	return strings.TrimRight(line, "\r\n"), err
}

// AppendCommand appends a RESP array of bulk strings to dst.
func AppendCommand(dst []byte, args ...string) []byte {
	dst = fmt.Appendf(dst, "*%d\r\n", len(args))
	for _, a := range args {
		dst = fmt.Appendf(dst, "$%d\r\n%s\r\n", len(a), a)
	}
	return dst
}
