package server

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"sandwich/runtime/server/generation"
)

// network is a listener in memory. Its connections wait on channels only, so that tests in a bubble
// of testing/synctest run on a virtual clock: time passes only while every goroutine waits, and
// timeouts do not depend on the speed of the machine.
type network struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	dials  atomic.Int64 // accepted connections
	client *http.Client
}

// inMemory runs a test on a virtual clock with a network of its own.
func inMemory(t *testing.T, test func(t *testing.T, n *network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		t.Cleanup(n.client.CloseIdleConnections)
		test(t, n)
	})
}

func newNetwork() *network {
	n := &network{conns: make(chan net.Conn), closed: make(chan struct{})}
	n.client = &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return n.connect("127.0.0.1") },
	}}
	return n
}

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

func (n *network) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// clientEnd is the server's end of a connection of a client with an address.
type clientEnd struct {
	net.Conn
	addr net.Addr
}

func (c *clientEnd) RemoteAddr() net.Addr { return c.addr }

// connect returns the client's end of a new connection after the server has accepted it.
func (n *network) connect(from string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case n.conns <- &clientEnd{server, &net.TCPAddr{IP: net.ParseIP(from), Port: 9}}:
		n.dials.Add(1)
		return client, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// dialFrom connects from an address.
func (n *network) dialFrom(t *testing.T, from string) net.Conn {
	t.Helper()
	c, err := n.connect(from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func (n *network) dial(t *testing.T) net.Conn {
	t.Helper()
	return n.dialFrom(t, "127.0.0.1")
}

// start serves g until the test ends.
func (n *network) start(t *testing.T, g generation.Generator, o Options) *Server {
	t.Helper()
	srv := New(g, o)
	startOn(t, n, srv)
	return srv
}

// startOn serves on a listener until the test ends.
func startOn(t *testing.T, ln net.Listener, srv *Server) {
	t.Helper()
	untilEnd(t, srv.Serve, ln)
}

// serveHealth serves health on a listener until the test ends.
func serveHealth(t *testing.T, ln net.Listener, srv *Server) {
	t.Helper()
	untilEnd(t, srv.ServeHealth, ln)
}

// untilEnd calls serve with a context that ends with the test.
func untilEnd(t *testing.T, serve func(context.Context, ...net.Listener) error, listeners ...net.Listener) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- serve(ctx, listeners...) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("serving %v: %v", listeners, err)
		}
	})
}
