package actions

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// localAddrs is the set of local ends of open connections.
type localAddrs struct {
	mu   sync.Mutex
	open map[netip.AddrPort]struct{}
	now  atomic.Pointer[[]netip.AddrPort] // immutable copy of open
}

func (a *localAddrs) load() []netip.AddrPort {
	if p := a.now.Load(); p != nil {
		return *p
	}
	return nil
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialer wraps dial (nil: TCP) so that the local end of each connection is
// known while it is open. TLS, if any, goes on top: go-redis leaves it to a
// dialer that it did not make itself.
func (a *localAddrs) dialer(dial dialFunc, conf *tls.Config) dialFunc {
	if dial == nil {
		// Keep-alive finds the peer that is gone without a word (a host
		// that lost power) on subscriptions, which mostly listen.
		d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 5 * time.Second, Count: 3}}
		dial = d.DialContext
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		conn = a.track(conn)
		if conf == nil {
			return conn, nil
		}
		c := conf.Clone()
		if c.ServerName == "" {
			c.ServerName, _, _ = net.SplitHostPort(addr)
		}
		t := tls.Client(conn, c)
		if err := t.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, err
		}
		return t, nil
	}
}

func (a *localAddrs) track(conn net.Conn) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn // a unix socket is never on the network
	}
	ap := tcp.LocalAddr().(*net.TCPAddr).AddrPort()
	ap = netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
	a.change(func() { a.open[ap] = struct{}{} })
	return &trackedConn{TCPConn: tcp, gone: func() { a.change(func() { delete(a.open, ap) }) }}
}

func (a *localAddrs) change(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open == nil {
		a.open = make(map[netip.AddrPort]struct{})
	}
	f()
	list := make([]netip.AddrPort, 0, len(a.open))
	for ap := range a.open {
		list = append(list, ap)
	}
	a.now.Store(&list)
}

// trackedConn runs gone once, when it is closed. It embeds the TCP connection
// rather than net.Conn, so that go-redis can still look whether the socket of
// an idle connection is alive.
type trackedConn struct {
	*net.TCPConn
	once sync.Once
	gone func()
}

// Close implements net.Conn.
func (c *trackedConn) Close() error {
	err := c.TCPConn.Close()
	c.once.Do(c.gone)
	return err
}
