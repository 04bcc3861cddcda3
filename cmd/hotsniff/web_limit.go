package main

import (
	"net"
	"sync"
)

// maxConnections bounds the open connections to all listeners: each costs some
// ten kilobytes, and more with TLS. A scraper and a few browsers need a dozen.
const maxConnections = 512

// limitedListener hangs up at once on who comes when all slots are taken.
// Those who are connected, Prometheus for one, stay.
type limitedListener struct {
	net.Listener
	slots chan struct{} // one for each open connection
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &limitedConn{Conn: c, slots: l.slots}, nil
		default:
			c.Close()
		}
	}
}

// limitedConn gives its slot back when it is closed.
type limitedConn struct {
	net.Conn
	slots chan struct{}
	once  sync.Once
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.once.Do(func() { <-c.slots })
	return c.Conn.Close()
}
