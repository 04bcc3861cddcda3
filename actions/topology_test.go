package actions

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsniff/hotsniff/hotlist"
	"github.com/hotsniff/hotsniff/hotlist/redistest"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

// authority makes certificates for 127.0.0.1.
type authority struct {
	t    *testing.T
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	file string // the authority's own certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.key = a.newKey()
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.file = a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	a.t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return k
}

func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// issue makes a certificate that ends at the given time.
func (a *authority) issue(name string, end time.Time) (cert, key string) {
	a.t.Helper()
	k := a.newKey()
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: end,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &k.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	kder, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(name+".pem", "CERTIFICATE", der), a.write(name+".key", "PRIVATE KEY", kder)
}

func tlsPort(t *testing.T) string {
	bin := testkit.Program(t, "redis-server")
	if out, _ := exec.Command(bin, "--tls-port", "0", "--tls-cert-file", "/nonexistent", "--port", "0", "--help-me-fail", "x").CombinedOutput(); strings.Contains(string(out), "tls-port") {
		testkit.Missing(t, "redis-server is built without TLS")
	}
	return fmt.Sprint(redistest.FreePort(t))
}

func TestFaultCertificateExpires(t *testing.T) {
	a := newAuthority(t)
	good, goodKey := a.issue("good", time.Now().Add(24*time.Hour))
	old, oldKey := a.issue("old", time.Now().Add(-time.Hour))
	client, clientKey := a.issue("client", time.Now().Add(24*time.Hour))
	port := tlsPort(t)
	s := redistest.Start(t, "--tls-port", port, "--tls-cert-file", good, "--tls-key-file", goodKey, "--tls-ca-cert-file", a.file)
	sc := newScene(t, s, Config{Connection: Connection{
		URL: "rediss://127.0.0.1:" + port, TLS: TLSFiles{CAFile: a.file, CertFile: client, KeyFile: clientKey},
	}}, subscriber(t, s.Addr))
	if n := len(sc.p.LocalAddrs()); n != 1 {
		t.Errorf("%d local addresses with TLS", n)
	}
	s.Do("CONFIG", "SET", "tls-cert-file", old, "tls-key-file", oldKey)
	s.Do("CLIENT", "KILL", "SKIPME", "yes", "TYPE", "normal")
	sc.meanwhile()
	sc.fails(ResultTLS)
	s.Do("CONFIG", "SET", "tls-cert-file", good, "tls-key-file", goodKey)
	sc.recovered(publishing, ResultTLS)
}

func TestClientCertificateIsDemanded(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issue("server", time.Now().Add(time.Hour))
	port := tlsPort(t)
	redistest.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", a.file)
	p := start(t, Config{Connection: Connection{URL: "rediss://127.0.0.1:" + port, TLS: TLSFiles{CAFile: a.file}}})
	p.Publish(listOf("a"))
	redistest.Eventually(t, patience, "refused", func() bool { return p.Stats().Results[ResultTLS] > 0 })
}

func TestClassifyTLS(t *testing.T) {
	for _, err := range []error{
		fmt.Errorf("x: %w", &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}),
		tls.RecordHeaderError{Msg: "no TLS"},
		tls.AlertError(42),
	} {
		if got := classify(err); got != ResultTLS {
			t.Errorf("%v is %v", err, got)
		}
	}
}

func TestFaultFailoverBySentinel(t *testing.T) {
	s1 := redistest.Start(t)
	s2 := redistest.Start(t, "--replicaof", "127.0.0.1 "+fmt.Sprint(s1.Port))
	redistest.Eventually(t, patience, "in sync", func() bool { return strings.Contains(s2.Do("INFO", "replication"), "master_link_status:up") })
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor m 127.0.0.1 %d 1\nsentinel down-after-milliseconds m 1000\nsentinel failover-timeout m 3000\n", s1.Port)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel := redistest.StartSentinel(t, conf)
	redistest.Eventually(t, patience, "the sentinel knows the replica", func() bool {
		return strings.Contains(sentinel.Do("INFO", "sentinel"), "slaves=1")
	})
	sub := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{sentinel.Addr}, Protocol: 2})
	t.Cleanup(func() { sub.Close() })
	sc := newScene(t, s1, Config{Connection: Connection{URL: "redis://" + sentinel.Addr, SentinelMaster: "m"}, Interval: time.Second}, sub)
	sc.s = s2 // where the truth will be
	s1.Kill()
	sc.meanwhile()
	sc.fails(ResultUnreachable)
	redistest.Eventually(t, patience, "failed over", func() bool { return strings.Contains(s2.Do("INFO", "replication"), "role:master") })
	sc.recovered(publishing, ResultUnreachable)
}

func startCluster(t *testing.T) []*redistest.Server { return redistest.StartCluster(t, 3) }

func clusterClient(t *testing.T, ss []*redistest.Server) redis.UniversalClient {
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{ss[0].Addr, ss[1].Addr, ss[2].Addr}, Protocol: 2})
	t.Cleanup(func() { c.Close() })
	return c
}

func TestFaultClusterSlotMovesAndNodeDies(t *testing.T) {
	ss := startCluster(t)
	sub := clusterClient(t, ss)
	w := hotlist.Watch(context.Background(), sub, hotlist.WatchConfig{})
	t.Cleanup(w.Close)
	<-w.Ready()
	p := start(t, Config{Retain: true, Manual: true, Interval: 500 * time.Millisecond,
		Connection: Connection{Addrs: []string{ss[0].Addr, ss[1].Addr, ss[2].Addr}, Cluster: true}})
	sees := func(key string) {
		t.Helper()
		p.Publish(listOf(key))
		redistest.Eventually(t, patience, "hot: "+key, func() bool { return w.IsHot(key) && len(w.Hot()) == 1 })
		redistest.Eventually(t, patience, "retained: "+key, func() bool {
			v, _ := sub.Get(context.Background(), "hotsniff:list:node-1").Result()
			l, err := hotlist.Decode([]byte(v))
			return err == nil && keys(l) == key
		})
	}
	sees("first")

	// Move the slot of the retained list to another master.
	ctx := context.Background()
	slot := int(sub.ClusterKeySlot(ctx, "hotsniff:list:node-1").Val())
	from := slot * 3 / 16384
	for 16384*from/3 > slot {
		from--
	}
	for 16384*(from+1)/3 <= slot {
		from++
	}
	to := (from + 1) % 3
	ss[from].Do("DEL", "hotsniff:list:node-1")
	id := ss[to].Do("CLUSTER", "MYID")
	for _, i := range []int{to, from, 3 - to - from} {
		ss[i].Do("CLUSTER", "SETSLOT", slot, "NODE", id)
	}
	sees("second")

	// A pin lands on whatever node owns the hash.
	m := ManualTarget{Client: sub}
	if err := m.Pin(ctx, "pinned", time.Time{}, 0, Rule{}); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, patience, "pinned", func() bool { return w.IsHot("pinned") })
	if _, err := m.Unpin(ctx, "pinned"); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, patience, "not pinned", func() bool { return !w.IsHot("pinned") })

	// Kill a master that neither the subscription nor the list lives on.
	channel := int(sub.ClusterKeySlot(ctx, hotlist.DefaultChannel).Val()) * 3 / 16384
	for i := range ss {
		if i != to && i != channel {
			ss[i].Kill()
			break
		}
	}
	sees("third")
}

func TestClusterShardedChannel(t *testing.T) {
	ss := startCluster(t)
	w := hotlist.Watch(context.Background(), clusterClient(t, ss), hotlist.WatchConfig{Sharded: true})
	t.Cleanup(w.Close)
	<-w.Ready()
	p := start(t, Config{Sharded: true, Manual: true, Connection: Connection{Addrs: []string{ss[0].Addr}, Cluster: true}})
	p.Publish(listOf("a"))
	redistest.Eventually(t, patience, "hot", func() bool { return w.IsHot("a") })
	if st := p.Stats(); st.Receivers == 0 {
		t.Errorf("stats %+v", st)
	}
}
