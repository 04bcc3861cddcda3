package main

import (
	"context"
	"io"
	"net"
)

// dialFrom connects from a local address and drops what comes back.
func dialFrom(ctx context.Context, addr, local string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(local)}}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	go io.Copy(io.Discard, conn)
	return conn, nil
}
