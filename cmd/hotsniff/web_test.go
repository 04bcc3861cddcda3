package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// passwordHash is bcrypt of "correct horse" at the least cost.
const passwordHash = `$2a$04$3x9I4eRpTwD9q13tRuPUSeTVZAASel83j/gpkEXnUXwUMld5V2h1e`

// certificate writes a self-signed certificate for 127.0.0.1 with its key.
func certificate(t *testing.T, dir string) (pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certText := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	keyText := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	for name, data := range map[string][]byte{"cert.pem": certText, "key.pem": keyText} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certText)
	return pool
}

// TestWebServesTLSWithAuthenticationOnSeveralAddresses goes through the flags
// and the toolkit to the wire.
func TestWebServesTLSWithAuthenticationOnSeveralAddresses(t *testing.T) {
	dir := t.TempDir()
	pool := certificate(t, dir)
	config := filepath.Join(dir, "web.yml")
	text := fmt.Sprintf("tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\nbasic_auth_users:\n  prometheus: '%s'\n", passwordHash)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &webFlags{Listen: []string{"127.0.0.1:0", "127.0.0.1:0"}, WebConfig: config}
	listeners, err := f.listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "secret keys") })
	go func() { done <- serveWeb(ctx, listeners, handler, config, slog.New(slog.DiscardHandler)) }()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	get := func(addr, password string) int {
		t.Helper()
		r, _ := http.NewRequest("GET", "https://"+addr+"/metrics", nil)
		if password != "" {
			r.SetBasicAuth("prometheus", password)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for _, addr := range addresses(listeners) {
		if got := [3]int{get(addr, ""), get(addr, "wrong"), get(addr, "correct horse")}; got != [3]int{401, 401, 200} {
			t.Errorf("%s without, with a wrong, with the right password: got %v", addr, got)
		}
		if resp, err := http.Get("http://" + addr + "/metrics"); err == nil && resp.StatusCode == 200 {
			t.Error("plain HTTP is answered")
		}
	}
	transport.CloseIdleConnections()
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Second):
		t.Error("still serving 2 s after the end")
	}
}

func TestWarnsWhenStrangersCanRead(t *testing.T) {
	auth := write(t, "auth.yml", "basic_auth_users:\n  a: '"+passwordHash+"'\n")
	tlsOnly := write(t, "tls.yml", "tls_server_config:\n  client_auth_type: RequestClientCert\n")
	certs := write(t, "certs.yml", "tls_server_config:\n  client_auth_type: RequireAndVerifyClientCert\n")
	for _, c := range []struct {
		addr, config string
		want         bool
	}{
		{"127.0.0.1:0", "", false}, {"[::1]:0", "", false}, {"0.0.0.0:0", "", true},
		{"0.0.0.0:0", auth, false}, {"0.0.0.0:0", tlsOnly, true}, {"0.0.0.0:0", certs, false},
	} {
		l, err := net.Listen("tcp", c.addr)
		if err != nil {
			t.Log(err) // no IPv6 here
			continue
		}
		var out bytes.Buffer
		(&webFlags{WebConfig: c.config}).warnIfOpen([]net.Listener{l}, slog.New(slog.NewTextHandler(&out, nil)))
		l.Close()
		if got := strings.Contains(out.String(), "level=WARN"); got != c.want {
			t.Errorf("%s with %q: warned %v; want %v", c.addr, c.config, got, c.want)
		}
	}
}

func TestBadWebConfigurationIsRefusedAtTheStart(t *testing.T) {
	bad := write(t, "web.yml", "basic_auth_user: {}\n")
	if code, _, errOut := hotsniff(t, "", "run", "--web.config.file", bad); code != 1 || !strings.Contains(errOut, "--web.config.file") {
		t.Errorf("run: got %d, %s", code, errOut)
	}
	file := write(t, "hotsniff.yml", "web:\n  config.file: "+bad+"\n  listen-address: [127.0.0.1:1, 127.0.0.1:2]\n")
	if code, _, errOut := hotsniff(t, "", "check-config", file); code != 1 || !strings.Contains(errOut, "web.config.file") {
		t.Errorf("check-config: got %d, %s", code, errOut)
	}
	if code, _, errOut := hotsniff(t, "", "run", "--web.systemd-socket"); code != 1 || !strings.Contains(errOut, "no socket") {
		t.Errorf("systemd socket: got %d, %s", code, errOut)
	}
}
