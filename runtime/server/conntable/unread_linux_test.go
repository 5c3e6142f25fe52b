package conntable

import (
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestUnreadBytes checks the tiers of connections whose bytes are not read yet: a complete header
// is kept, the beginning of one counts as a new connection, and a slow header stays slow.
func TestUnreadBytes(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for _, c := range []struct {
		text  string
		state int
		tier  int // without unread bytes
		want  int
	}{
		{"", stateIdle, tierIdle, tierIdle},
		{"GET /h", stateIdle, tierIdle, tierFresh},
		{"GET / HTTP/1.1\r\n\r\n", stateIdle, tierIdle, tierUnread},
		{"x: y\r\n\r\n", stateHeader, tierStalled, tierUnread},
		{"x: y\n\n", stateHeader, tierFresh, tierUnread},
		{"x: y\r\n", stateHeader, tierStalled, tierStalled},
		{"x", stateHeader, tierFresh, tierFresh},
		{strings.Repeat("x", maxPeek), stateHeader, tierStalled, tierUnread},
		{"x", stateBody, tierStalled, tierUnproven},
	} {
		client, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		server, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(client, c.text); err != nil {
			t.Fatal(err)
		}
		awaitUnread(t, server, len(c.text))
		conn := &Conn{Conn: server, state: c.state}
		if got := conn.tierUnread(c.tier); got != c.want {
			t.Errorf("state %d with %.20q unread: tier %d, want %d", c.state, c.text, got, c.want)
		}
		client.Close()
		server.Close()
	}
}

// awaitUnread waits until n bytes of a connection are unread.
func awaitUnread(t *testing.T, c net.Conn, n int) {
	t.Helper()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil || n == 0 {
		return
	}
	err = raw.Read(func(fd uintptr) bool {
		got, _, err := unix.Recvfrom(int(fd), make([]byte, n), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return err == nil && got == n
	})
	if err != nil {
		t.Fatal(err)
	}
}
