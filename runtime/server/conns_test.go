package server

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const getHealth = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"

// dialFrom connects from a loopback address of this machine.
func dialFrom(t *testing.T, from, url string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Skipf("no second loopback address; give the loopback interface all of 127.0.0.0/8: %v", err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// ask sends one request and returns the status, or 0 if no answer arrived in time.
func ask(t *testing.T, c net.Conn, request string, within time.Duration) int {
	t.Helper()
	c.SetDeadline(time.Now().Add(within))
	if _, err := io.WriteString(c, request); err != nil {
		return 0
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// closed reports whether the server closes a connection without an answer.
func closed(c net.Conn) bool {
	c.SetReadDeadline(time.Now().Add(never))
	n, err := c.Read(make([]byte, 1))
	var timeout net.Error
	return n == 0 && err != nil && !(errors.As(err, &timeout) && timeout.Timeout())
}

// The oldest waiting connection is displaced first, then those that send their header slowly; busy
// ones never.
func TestIdleConnectionsGiveWay(t *testing.T) {
	inMemory(t, func(t *testing.T, n *network) {
		f := &fake{words: []string{"x"}, first: make(chan struct{}), started: make(chan struct{}, 1)}
		n.start(t, f, Options{MaxConns: 4, ClientConns: 4})
		busy := make(chan int, 1)
		client := n.dial(t)
		go func() { busy <- ask(t, client, rawPost(chatOnce), never) }()
		<-f.started

		slow, silent, kept := n.dial(t), n.dial(t), n.dial(t)
		io.WriteString(slow, "GET /health HT")
		if code := ask(t, kept, getHealth, never); code != 200 {
			t.Fatalf("kept alive: status %d", code)
		}
		time.Sleep(time.Second)
		for i, next := range []net.Conn{silent, kept, slow} {
			newcomer := n.dial(t)
			if code := ask(t, newcomer, getHealth, never); code != 200 {
				t.Fatalf("newcomer %d: status %d", i, code)
			}
			io.WriteString(newcomer, "GET /health HT") // no longer idle
			synctest.Wait()
			if !closed(next) {
				t.Fatalf("newcomer %d: the connection that had to give way is open", i)
			}
		}
		close(f.first)
		if code := <-busy; code != 200 {
			t.Errorf("the busy connection: status %d", code)
		}
	})
}

// If every connection is busy, a new one is refused with the reason, and served later.
func TestConnectionBound(t *testing.T) {
	f := &fake{words: []string{"x"}, first: make(chan struct{}), started: make(chan struct{}, 2)}
	url, _ := start(t, f, Options{MaxConns: 2, ClientConns: 3})
	for range 2 {
		io.WriteString(dial(t, url), rawPost(chatOnce))
		<-f.started
	}
	third := dial(t, url)
	io.WriteString(third, getHealth)
	third.SetReadDeadline(time.Now().Add(never))
	answer, err := io.ReadAll(third)
	for _, want := range []string{"HTTP/1.1 503", "too_many_connections", "Retry-After: 1"} {
		if err != nil || !strings.Contains(string(answer), want) {
			t.Errorf("a third connection: %q %v, want %q in it", answer, err, want)
		}
	}
	close(f.first)
	eventually(t, "a third connection is served", func() bool {
		return ask(t, dial(t, url), getHealth, never) == 200
	})
}

// A client that opens many connections at once is served on the newest one, whether the others are
// silent or have sent a part of a header. A connection with a complete request is never displaced.
func TestBurstOfOneClient(t *testing.T) {
	url, _ := start(t, &fake{}, Options{MaxConns: 100, ClientConns: 8})
	asked := dial(t, url)
	io.WriteString(asked, getHealth)
	for i := range 40 {
		if c := dial(t, url); i%2 == 0 {
			io.WriteString(c, "GET /he")
		}
		if code := ask(t, dial(t, url), getHealth, never); code != 200 {
			t.Fatalf("behind %d others: status %d", i+1, code)
		}
	}
	asked.SetReadDeadline(time.Now().Add(never))
	if resp, err := http.ReadResponse(bufio.NewReader(asked), nil); err != nil || resp.StatusCode != 200 {
		t.Fatalf("the first request: %v", err)
	}
}

// A client with its limit of busy connections is refused with the reason. Another client is served,
// and so is the first one after one of its requests has ended.
func TestClientBound(t *testing.T) {
	f := &fake{words: []string{"x"}, first: make(chan struct{}), started: make(chan struct{}, 2)}
	url, _ := start(t, f, Options{MaxConns: 100, ClientConns: 2})
	other := dialFrom(t, "127.0.0.2", url)
	for range 2 {
		io.WriteString(dial(t, url), rawPost(chatOnce))
		<-f.started
	}
	refused := dial(t, url)
	io.WriteString(refused, getHealth)
	refused.SetReadDeadline(time.Now().Add(never))
	answer, err := io.ReadAll(refused)
	text := string(answer)
	if err != nil || !strings.HasPrefix(text, "HTTP/1.1 503") || !strings.Contains(text, "too_many_connections") {
		t.Errorf("a third connection of one client: %q %v", answer, err)
	}
	if code := ask(t, other, getHealth, never); code != 200 {
		t.Errorf("another client: status %d", code)
	}
	close(f.first)
	eventually(t, "the client is let in again", func() bool {
		return ask(t, dial(t, url), getHealth, never) == 200
	})
}

// scarce is a listener whose process has no further descriptors while fails is positive.
type scarce struct {
	net.Listener
	fails atomic.Int64
}

func (s *scarce) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err == nil && s.fails.Add(-1) >= 0 {
		c.Close()
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
	}
	return c, err
}

// If descriptors run out, an idle connection is displaced.
func TestOutOfDescriptors(t *testing.T) {
	inMemory(t, func(t *testing.T, n *network) {
		l := &scarce{Listener: n}
		startOn(t, l, New(&fake{}, Options{ErrorLog: discardLog}))
		idle := n.dial(t)
		if code := ask(t, idle, getHealth, never); code != 200 {
			t.Fatalf("status %d", code)
		}
		synctest.Wait() // until it is idle
		l.fails.Store(1)
		n.dial(t)
		if !closed(idle) {
			t.Error("the idle connection keeps its descriptor")
		}
		if code := ask(t, n.dial(t), getHealth, never); code != 200 {
			t.Errorf("afterwards: status %d", code)
		}
	})
}
