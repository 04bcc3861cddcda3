package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotsniff/hotsniff/internal/export"
	"github.com/hotsniff/hotsniff/internal/pipeline"
)

// authority is a certificate authority made for a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key, cert: &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}}
	a.cert, _ = a.sign(t, a.cert, key)
	return a
}

// sign returns a certificate for key, and as PEM.
func (a *authority) sign(t *testing.T, template *x509.Certificate, key *ecdsa.PrivateKey) (*x509.Certificate, []byte) {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// issue makes a certificate of 127.0.0.1 with its key, as PEM, for one use.
func (a *authority) issue(t *testing.T, use x509.ExtKeyUsage) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, cert = a.sign(t, &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{use}}, private)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// serveTest serves h as the daemon does and returns the address.
func serveTest(t *testing.T, h http.Handler, config string) string {
	t.Helper()
	listeners, err := (&webFlags{Listen: []string{"127.0.0.1:0"}}).listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serveWeb(ctx, listeners, h, config, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listeners[0].Addr().String()
}

// surface is everything that the daemon serves.
func surface(reload func() (string, error)) http.Handler {
	latest := func() *pipeline.Snapshot { return nil }
	return export.NewHandler(export.Options{Latest: latest, Monitor: export.NewMonitor(latest), Top: 20, Reload: reload})
}

// TestClientCertificatesAreRequiredAndChecked: none, a stranger's, and ours.
func TestClientCertificatesAreRequiredAndChecked(t *testing.T) {
	ours, strange, dir := newAuthority(t), newAuthority(t), t.TempDir()
	cert, key := ours.issue(t, x509.ExtKeyUsageServerAuth)
	caText := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ours.cert.Raw})
	for name, data := range map[string][]byte{"cert.pem": cert, "key.pem": key, "ca.pem": caText, "web.yml": []byte(
		"tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n  client_ca_file: ca.pem\n  client_auth_type: RequireAndVerifyClientCert\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	addr := serveTest(t, surface(nil), filepath.Join(dir, "web.yml"))
	roots := x509.NewCertPool()
	roots.AddCert(ours.cert)
	get := func(by *authority, use x509.ExtKeyUsage) (int, error) {
		config := &tls.Config{RootCAs: roots}
		if by != nil {
			pair, err := tls.X509KeyPair(by.issue(t, use))
			if err != nil {
				t.Fatal(err)
			}
			// Shown whatever the server says it would like to see.
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		transport := &http.Transport{TLSClientConfig: config}
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Get("https://" + addr + "/metrics")
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		return resp.StatusCode, nil
	}
	for _, c := range []struct {
		name string
		by   *authority
		use  x509.ExtKeyUsage
		want string // in the error; "" for an answer
	}{
		{"none", nil, 0, "certificate required"},
		{"of a stranger", strange, x509.ExtKeyUsageClientAuth, "tls: "},
		{"of a server", ours, x509.ExtKeyUsageServerAuth, "tls: "},
		{"ours", ours, x509.ExtKeyUsageClientAuth, ""},
	} {
		code, err := get(c.by, c.use)
		if c.want == "" && (err != nil || code != 200) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("certificate %s: got %d, %v; want an error with %q, or 200", c.name, code, err, c.want)
		}
	}
}

// TestNothingIsServedWithoutThePassword: what changes something not either.
func TestNothingIsServedWithoutThePassword(t *testing.T) {
	var reloads atomic.Int32
	addr := serveTest(t, surface(func() (string, error) { reloads.Add(1); return "loaded", nil }),
		write(t, "web.yml", "basic_auth_users:\n  prometheus: '"+passwordHash+"'\n"))
	ask := func(method, path, password string) int {
		t.Helper()
		r, _ := http.NewRequest(method, "http://"+addr+path, nil)
		if password != "" {
			r.SetBasicAuth("prometheus", password)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for _, path := range []string{"/", "/metrics", "/api/v1/hotkeys", "/api/v1/status", "/-/healthy", "/-/ready", "/nothing"} {
		if got := ask("GET", path, ""); got != 401 {
			t.Errorf("GET %s: got %d; want 401", path, got)
		}
	}
	if got := [3]int{ask("POST", "/-/reload", ""), ask("POST", "/-/reload", "wrong"), ask("POST", "/-/reload", "correct horse")}; got != [3]int{401, 401, 200} || reloads.Load() != 1 {
		t.Errorf("POST /-/reload without, with a wrong, with the right password: got %v and %d reloads", got, reloads.Load())
	}
}

// TestTheDefaultMuxIsNotServed: what a library puts there, pprof for one, stays
// unreachable.
func TestTheDefaultMuxIsNotServed(t *testing.T) {
	http.HandleFunc("/put-there-by-a-library", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	addr := serveTest(t, surface(nil), "")
	for _, path := range []string{"/put-there-by-a-library", "/debug/pprof/", "/debug/pprof/heap", "/debug/vars"} {
		resp, err := http.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 404 {
			t.Errorf("GET %s: got %d; want 404", path, resp.StatusCode)
		}
	}
}

// TestHostileClientsAreCutOff: a header that never ends, and one that is
// too large.
func TestHostileClientsAreCutOff(t *testing.T) {
	t.Parallel()
	addr := serveTest(t, surface(nil), "")
	dial := func(text string) net.Conn {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(30 * time.Second)) // for broken code only
		io.WriteString(c, text)                         // which may be cut off
		return c
	}
	resp, err := http.ReadResponse(bufio.NewReader(dial("GET /metrics HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("x", 2*maxHeaderBytes)+"\r\n\r\n")), nil)
	if err != nil || resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of %d bytes: got %v, %v; want 431", 2*maxHeaderBytes, resp, err)
	}
	if rest, err := io.ReadAll(dial("GET /metrics HTTP/1.1\r\nHost: a\r\n")); err != nil || strings.Contains(string(rest), "200 OK") {
		t.Errorf("half a header: got %q, %v; want the server to hang up", rest, err)
	}
}

// TestIdleClientsCannotTakeAllMemory: beyond the limit the server hangs up, who
// is connected is served on, and there is room again once others have left.
func TestIdleClientsCannotTakeAllMemory(t *testing.T) {
	addr := serveTest(t, surface(nil), "")
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	get := func(c *http.Client) error {
		resp, err := c.Get("http://" + addr + "/-/healthy")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	if err := get(client); err != nil {
		t.Fatal(err)
	}
	var idle []net.Conn
	leave := func() {
		for _, c := range idle {
			c.Close()
		}
	}
	defer leave()
	for range maxConnections {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, c)
	}
	// Connections are let in in the order of arrival: the last found no slot.
	last := idle[len(idle)-1]
	io.WriteString(last, "GET /-/healthy HTTP/1.1\r\nHost: a\r\n\r\n") // may be too late
	if resp, err := http.ReadResponse(bufio.NewReader(last), nil); err == nil {
		t.Errorf("one more than %d was let in: got %s", maxConnections, resp.Status)
	}
	if err := get(client); err != nil {
		t.Errorf("who was connected is not served on: %v", err)
	}
	leave()
	eventually(t, "there is room again", func() bool {
		fresh := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		return get(fresh) == nil
	})
}

// TestSystemdHandsOverTheSockets: the way systemd does it (sd_listen_fds(3)),
// one TCP and one unix socket, and no other is opened.
func TestSystemdHandsOverTheSockets(t *testing.T) {
	redis := live(t)
	bin, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "hotsniff.sock")
	unix, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$@"`, "sh", bin, "run", "--port", strconv.Itoa(redis.Port), "--web.systemd-socket")
	cmd.Env = append(os.Environ(), "LISTEN_FDS=2")
	for _, l := range []interface{ File() (*os.File, error) }{tcp.(*net.TCPListener), unix.(*net.UnixListener)} {
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		defer f.Close()
	}
	// From here on they are the daemon's alone, as systemd's are.
	unix.(*net.UnixListener).SetUnlinkOnClose(false)
	closeAll([]net.Listener{tcp, unix})
	p := startProcess(t, cmd, "http://"+tcp.Addr().String())
	overUnix := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	resp, err := overUnix.Get("http://hotsniff/metrics")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("over the unix socket: got %d", resp.StatusCode)
	}
	if log := p.logText(); !strings.Contains(log, tcp.Addr().String()) || strings.Contains(log, ":9379") || strings.Contains(log, "level=WARN") {
		t.Errorf("want both sockets, not the default address, and no warning:\n%s", log)
	}
	if _, err := p.stop(t, os.Interrupt); err != nil {
		t.Errorf("stopped with %v\n%s", err, p.logText())
	}
}
