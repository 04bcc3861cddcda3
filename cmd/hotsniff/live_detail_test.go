package main

import (
	"bufio"
	"fmt"
	"math"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hotsniff/hotsniff/internal/report"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

// dial opens a client connection for commands that the test writes itself.
func dial(t *testing.T, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	return c, bufio.NewReaderSize(c, 1<<16)
}

// ask sends a command and reads its reply: a line or a bulk string.
func ask(t *testing.T, c net.Conn, in *bufio.Reader, args ...string) string {
	t.Helper()
	if _, err := c.Write(testkit.AppendCommand(nil, args...)); err != nil {
		t.Fatal(err)
	}
	line, err := in.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if _, err := fmt.Sscanf(line, "$%d", &n); err == nil && n >= 0 {
		if _, err := in.Discard(n + 2); err != nil {
			t.Fatal(err)
		}
	}
	return line
}

// TestReplyBytesAreTheTrueSizes: hotsniff captures no reply and still knows
// how many bytes were sent, from the acknowledgements of the clients.
func TestReplyBytesAreTheTrueSizes(t *testing.T) {
	redis := live(t)
	p := startDaemon(t, redis.Port, "--interface", "lo")
	c, in := dial(t, redis.Addr())
	const reads = 40
	want := map[string]float64{}
	for _, size := range []int{100, 10_000, 1_000_000} {
		key := fmt.Sprint("value:", size)
		reply := ask(t, c, in, "SET", key, strings.Repeat("v", size))
		want[key] = float64(len(reply))
		for range reads {
			header := ask(t, c, in, "GET", key)
			want[key] += float64(len(header) + size + 2)
		}
	}
	ask(t, c, in, "PING") // carries the acknowledgement of the last reply
	total := uint64(3*(reads+1) + 1)
	eventually(t, "every request is counted", func() bool { return p.report(t).Requests >= total })
	r := p.report(t)
	for key, bytes := range want {
		k := keyOf(r, key)
		if k == nil || k.Reads != reads || k.Writes != 1 {
			t.Errorf("%s: got %+v; want %d reads and 1 write", key, k, reads)
			continue
		}
		if math.Abs(float64(k.ReplyBytes)-bytes) > 0.05*bytes {
			t.Errorf("%s: got %d reply bytes; want %.0f within 5 %%", key, k.ReplyBytes, bytes)
		}
	}
}

// TestLiveSurfacesShowNoSecret sends passwords through a real connection and
// greps everything that the daemon says about it.
func TestLiveSurfacesShowNoSecret(t *testing.T) {
	redis := live(t)
	p := startDaemon(t, redis.Port, "--log.level", "debug", "--threshold", "0.001")
	c, in := dial(t, redis.Addr())
	secrets := []string{"S3cret-auth", "S3cret-hello", "S3cret-pass", "S3cret-acl", "S3cret-value", "S3cret-migrate", "S3cret-eval", "S3cret-typo"}
	n := 0
	for _, args := range [][]string{
		{"AUTH", "S3cret-auth"}, {"AUTH", "user", "S3cret-auth"}, {"HELLO", "2", "AUTH", "user", "S3cret-hello"},
		{"CONFIG", "SET", "masterauth", "S3cret-pass"}, {"ACL", "SETUSER", "u", ">S3cret-acl"}, {"SET", "k", "S3cret-value"},
		{"MIGRATE", "127.0.0.1", "1", "k", "0", "1", "AUTH", "S3cret-migrate"}, {"EVAL", "return 'S3cret-eval'", "0"},
		{"AUHT", "S3cret-typo"}, {"GET", "k"},
	} {
		ask(t, c, in, args...)
		n++
	}
	eventually(t, "every request is counted", func() bool { return p.report(t).Requests >= uint64(n) })
	r := p.report(t)
	if k := keyOf(r, "k"); k == nil || k.Accesses != 3 || r.Accesses != 3 {
		t.Errorf("got %+v of %d accesses; want 3 of k alone", k, r.Accesses)
	}
	if r.Commands[otherCommand] != 1 {
		t.Errorf("got %v; want one %s for AUHT", r.Commands, otherCommand)
	}
	for _, path := range []string{"/metrics", "/api/v1/hotkeys", "/api/v1/hotkeys?window=5s", "/"} {
		body, err := p.get(path)
		if err != nil {
			t.Error(err)
		}
		noSecret(t, path, body, secrets)
	}
	p.stop(t, syscall.SIGTERM)
	noSecret(t, "the log", p.logText(), secrets)
}

// otherCommand is the name of commands outside the table.
const otherCommand = "OTHER"

// TestClientsAreToldApart uses several loopback addresses as clients.
func TestClientsAreToldApart(t *testing.T) {
	redis := live(t)
	p := startDaemon(t, redis.Port)
	const clients = 20
	for i := range clients {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(i+1))}}
		c, err := d.Dial("tcp", redis.Addr())
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(c)
		for range 3 + 40*(i/(clients-1)) { // the last one asks 43 times
			ask(t, c, in, "GET", "shared")
		}
		c.Close()
	}
	want := uint64((clients-1)*3 + 43)
	var k *report.Key
	eventually(t, "every request is counted", func() bool {
		r := p.report(t)
		k = keyOf(r, "shared")
		return r.Requests >= want
	})
	if k.Clients != clients || k.TopClient == nil || k.TopClient.Address != "127.0.1.20" || math.Abs(k.TopClient.Share-43.0/100) > 0.02 {
		t.Errorf("got %d clients, top %+v; want %d, 127.0.1.20 with 0.43", k.Clients, k.TopClient, clients)
	}
}

// TestDefaultSnapLengthHoldsPipelines: with 512 bytes a third of the requests
// in pipelines of 16 was cut off.
func TestDefaultSnapLengthHoldsPipelines(t *testing.T) {
	redis := live(t)
	p := startDaemon(t, redis.Port, "--interface", "lo")
	c, in := dial(t, redis.Addr())
	const depth, rounds = 200, 20
	var batch []byte
	for i := range depth {
		batch = append(batch, testkit.AppendCommand(nil, "SET", fmt.Sprintf("pipelined:%03d", i), "some value")...)
	}
	for range rounds {
		if _, err := c.Write(batch); err != nil {
			t.Fatal(err)
		}
		for range depth {
			if _, err := in.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, "every request of the pipelines is counted", func() bool { return p.report(t).Requests >= depth*rounds })
}
