// Package redistest starts real Redis servers for tests, on free ports of the
// loopback, and does to them what happens to servers in operation: kill, stop,
// restart. A test that needs a server is skipped where redis-server is not
// installed, and fails there in continuous integration. It is used by the tests of hotsniff only.
package redistest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsniff/hotsniff/internal/testkit"
)

// startTimeout is generous: several packages test on the same small machine.
const startTimeout = 20 * time.Second

// runner keeps the server from outliving the test process: the server is
// killed when standard input ends, which it does when the test is gone.
const runner = `exec 3<&0; "$@" </dev/null >/dev/null 2>&1 & echo $!; read -r _ <&3; kill -9 $! 2>/dev/null; wait`

// Server is one redis-server. Its methods fail the test on errors.
type Server struct {
	Addr string // 127.0.0.1:port
	Port int
	Dir  string // its working directory; log is redis.log

	t     testing.TB
	args  []string
	sh    *exec.Cmd
	stdin interface{ Close() error }
	pid   int
	admin *redis.Client
}

// Start starts a server with further command line arguments of redis-server
// and waits until it answers.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	bin := testkit.Program(t, "redis-server")
	port := FreePort(t)
	s := &Server{t: t, Port: port, Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Dir: t.TempDir()}
	s.args = append([]string{bin, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", s.Dir,
		"--save", "", "--appendonly", "no", "--logfile", filepath.Join(s.Dir, "redis.log")}, args...)
	s.Run()
	t.Cleanup(func() {
		s.Resume()
		s.Kill()
	})
	return s
}

// FreePort returns a port of the loopback that nobody listens on, and whose
// cluster bus port (10,000 above) is one too.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if port <= 55000 {
			return port
		}
	}
	t.Fatal("no free port below 55000")
	return 0
}

// Run starts the process again after Kill, with further arguments this once.
func (s *Server) Run(extra ...string) {
	s.t.Helper()
	s.sh = exec.Command("sh", append(append([]string{"-c", runner, "sh"}, s.args...), extra...)...)
	stdin, err := s.sh.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := s.sh.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.sh.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.stdin = stdin
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.t.Fatalf("start redis-server: %v", err)
	}
	if s.pid, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		s.t.Fatal(err)
	}
	s.waitReady()
}

// waitReady waits for any answer at all: a server that demands a password is ready.
func (s *Server) waitReady() {
	s.t.Helper()
	deadline := time.Now().Add(startTimeout)
	for {
		conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
		if err == nil {
			conn.SetDeadline(time.Now().Add(time.Second))
			fmt.Fprintf(conn, "PING\r\n")
			_, err = conn.Read(make([]byte, 1))
			conn.Close()
			if err == nil {
				return
			}
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("redis-server on %s does not answer: %v", s.Addr, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Kill kills the process as a crash would.
func (s *Server) Kill() {
	if s.sh == nil {
		return
	}
	if s.admin != nil {
		s.admin.Close()
		s.admin = nil
	}
	syscall.Kill(s.pid, syscall.SIGKILL)
	s.stdin.Close()
	s.sh.Wait()
	s.sh = nil
}

// Pause stops the process without ending it (SIGSTOP): connections stay open
// and nothing answers.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume ends Pause.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	if s.sh != nil {
		syscall.Kill(s.pid, sig)
	}
}

// Client returns a client for the default user; it is closed with the test.
func (s *Server) Client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1})
	s.t.Cleanup(func() { c.Close() })
	return c
}

// Do runs a command as the default user and returns its reply as text.
func (s *Server) Do(args ...any) string {
	s.t.Helper()
	if s.admin == nil {
		s.admin = redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true})
	}
	v, err := s.admin.Do(context.Background(), args...).Result()
	if err != nil && err != redis.Nil {
		s.t.Fatalf("%v: %v", args, err)
	}
	return fmt.Sprint(v)
}

// URL returns redis://addr, with the user if it is not empty.
func (s *Server) URL(user string) string {
	if user != "" {
		return "redis://" + user + "@" + s.Addr
	}
	return "redis://" + s.Addr
}

// Eventually waits until ok, at most for the generous time given, and fails
// the test otherwise.
func Eventually(t testing.TB, within time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("within %v: not %s", within, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// StartSentinel starts a sentinel with the configuration file, which it will
// rewrite.
func StartSentinel(t testing.TB, conf string) *Server {
	t.Helper()
	bin := testkit.Program(t, "redis-server")
	port := FreePort(t)
	s := &Server{t: t, Port: port, Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Dir: filepath.Dir(conf)}
	s.args = []string{bin, conf, "--sentinel", "--port", strconv.Itoa(port), "--dir", s.Dir}
	s.Run()
	t.Cleanup(s.Kill)
	return s
}

// StartCluster starts n masters that share the slots equally and go on without
// one of them.
func StartCluster(t testing.TB, n int) []*Server {
	t.Helper()
	const slots = 16384
	var ss []*Server
	for range n {
		ss = append(ss, Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no"))
	}
	for i, s := range ss {
		s.Do("CLUSTER", "ADDSLOTSRANGE", slots*i/n, slots*(i+1)/n-1)
		s.Do("CLUSTER", "MEET", "127.0.0.1", ss[0].Port)
	}
	for _, s := range ss {
		Eventually(t, startTimeout, "a cluster", func() bool {
			info := s.Do("CLUSTER", "INFO")
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprint("cluster_known_nodes:", n)) &&
				strings.Contains(info, "cluster_slots_ok:16384")
		})
	}
	return ss
}
