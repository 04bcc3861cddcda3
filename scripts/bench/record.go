package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hotsniff/hotsniff/internal/testkit"
)

// recording is a file of real traffic and how it was made.
type recording struct {
	name, what string
	requests   uint64 // sent by redis-benchmark
	args       []string

	path string
	port string
	keys map[string]uint64 // accesses by key, as MONITOR told them
}

func recordings() []*recording {
	return []*recording{
		{name: "getset", what: "400,000 GET and SET", requests: 400_000,
			args: []string{"-t", "set,get", "-n", "200000", "-r", "1000", "-c", "20"}},
		{name: "set-p16", what: "1,000,000 SET, -P 16", requests: 1_000_000,
			args: []string{"-t", "set", "-n", "1000000", "-r", "1000", "-c", "20", "-P", "16"}},
	}
}

// record writes the traffic of one redis-benchmark to a file in dir, unless it
// is there already. The truth about its keys comes from the server itself.
func (r *recording) record(ctx context.Context, dir string) error {
	r.path = filepath.Join(dir, r.name+".pcap")
	if r.load() == nil {
		return nil
	}
	redis, err := testkit.StartRedis()
	if err != nil {
		return err
	}
	defer redis.Stop()
	r.port = strconv.Itoa(redis.Port)
	monitor, err := startMonitor(redis.Addr())
	if err != nil {
		return err
	}
	defer monitor.close()
	// What MONITOR sends is not part of the recording.
	filter := fmt.Sprintf("tcp port %s and not tcp port %d", r.port, monitor.port)
	dump, err := startUntil(ctx, "listening on", "tcpdump", "-i", "lo", "-B", "262144", "-s", "0", "-w", r.path, filter)
	if err != nil {
		return err
	}
	defer dump.stop()
	if _, _, err := runCommand(ctx, "redis-benchmark", append([]string{"-p", r.port, "-q"}, r.args...)...); err != nil {
		return err
	}
	time.Sleep(time.Second) // until the ring is empty
	dump.stop()
	if log := dump.log.String(); !strings.Contains(log, "\n0 packets dropped by kernel") {
		return fmt.Errorf("tcpdump lost packets; run it on a quieter machine:\n%s", log)
	}
	if r.keys, err = monitor.finish(redis.Addr()); err != nil {
		return err
	}
	return r.save()
}

// save writes the port and the truth beside the recording.
func (r *recording) save() error {
	f, err := os.Create(r.path + ".truth")
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	fmt.Fprintln(w, r.port)
	for k, n := range r.keys {
		fmt.Fprintln(w, k, n)
	}
	return w.Flush()
}

// load reads what save wrote.
func (r *recording) load() error {
	text, err := os.ReadFile(r.path + ".truth")
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	r.port, r.keys = lines[0], make(map[string]uint64)
	for _, line := range lines[1:] {
		var key string
		var n uint64
		if _, err := fmt.Sscan(line, &key, &n); err != nil {
			return err
		}
		r.keys[key] = n
	}
	return nil
}

// monitor counts what MONITOR says.
type monitor struct {
	conn net.Conn
	port int // of this end
	keys map[string]uint64
	done chan error
}

// monitorEnd is a request that nobody else makes: what precedes it is complete.
const monitorEnd = "hotsniff-bench-end"

func startMonitor(addr string) (*monitor, error) {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	m := &monitor{conn: conn, port: conn.LocalAddr().(*net.TCPAddr).Port, keys: make(map[string]uint64), done: make(chan error, 1)}
	in := bufio.NewReaderSize(conn, 1<<16)
	fmt.Fprintf(conn, "MONITOR\r\n")
	if line, err := in.ReadString('\n'); err != nil || line != "+OK\r\n" {
		conn.Close()
		return nil, fmt.Errorf("MONITOR: %q, %v", line, err)
	}
	go func() { m.done <- m.read(in) }()
	return m, nil
}

func (m *monitor) close() { m.conn.Close() }

// read counts lines like: +1700000000.123456 [0 127.0.0.1:4711] "SET" "key:1" "x"
func (m *monitor) read(in *bufio.Reader) error {
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		words := strings.Split(line, `"`)
		if len(words) < 4 {
			continue
		}
		switch strings.ToUpper(words[1]) {
		case "GET", "SET":
			m.keys[words[3]]++
		case "ECHO":
			if words[3] == monitorEnd {
				return nil
			}
		}
	}
}

// finish waits until all is counted and returns the accesses by key.
func (m *monitor) finish(addr string) (map[string]uint64, error) {
	if _, err := testkit.Ask(addr, "ECHO", monitorEnd); err != nil {
		return nil, err
	}
	select {
	case err := <-m.done:
		return m.keys, err
	case <-time.After(30 * time.Second):
		return nil, errors.New("MONITOR does not end")
	}
}
