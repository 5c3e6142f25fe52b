package server

import (
	"container/list"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A connection is busy while a request is answered on it; in every other state
// it only waits, and gives way where its place is needed.
const (
	connIdle    = iota // nothing has arrived since it was opened or since the last answer
	connHeader         // a header has begun to arrive
	connLingers        // a refusal is sent, and what the client still sends is thrown away
	connBusy           // a request is being answered
	connStates  = connBusy
)

// patience is how long a connection may wait in a state before it has to give way
// to another client's. One of nothing but silence gives way at once, one whose
// request lies unread in the socket never does, for as long as this machine is busy.
var patience = [connStates]time.Duration{connHeader: time.Second, connLingers: time.Second}

// soon is when to look again whether somebody can give way.
const soon = 100 * time.Millisecond

// conns is a listener that bounds how many connections are open, of all clients
// and of each. Where a place is needed, the connection that has been idle for
// longest gives way, then the one that has been sending its header for longest.
// Where all are busy, a client beyond its own bound is refused, and others wait
// in the backlog of the operating system.
type conns struct {
	net.Listener
	most, mostClient int
	refusals         chan struct{} // places of clients that are being refused

	mu      sync.Mutex
	changed sync.Cond // a connection left or began to wait, or the listener was closed
	open    int
	clients map[netip.Prefix]int
	waiting [connStates]list.List // of *conn, by the time they began to wait
	closed  bool
}

func newConns(ln net.Listener, most, mostClient int) *conns {
	c := &conns{Listener: ln, most: most, mostClient: mostClient, refusals: make(chan struct{}, 64),
		clients: make(map[netip.Prefix]int)}
	c.changed.L = &c.mu
	return c
}

// conn is one connection of the table; its state belongs to the table's lock.
type conn struct {
	net.Conn
	table  *conns
	client netip.Prefix
	state  int
	since  time.Time     // when it came into its state
	place  *list.Element // in the table's list of its state; nil: busy or gone
	gone   bool
	quiet  atomic.Bool // idle, so that the next byte begins a header
}

// Accept returns the next connection that has a place.
func (t *conns) Accept() (net.Conn, error) {
	for {
		raw, err := t.Listener.Accept()
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			// The system has fewer places than the table. net/http comes back
			// in a moment; by then the descriptor is free.
			t.mu.Lock()
			t.makeRoom(netip.Prefix{})
			t.mu.Unlock()
		}
		if err != nil {
			return nil, err
		}
		if c := t.admit(raw); c != nil {
			return c, nil
		}
	}
}

// admit gives a connection its place; nil: it was refused. It waits while every
// place is busy.
func (t *conns) admit(raw net.Conn) *conn {
	c := &conn{Conn: raw, table: t, client: clientOf(raw.RemoteAddr()), state: connBusy}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.client.IsValid() && t.clients[c.client] >= t.mostClient && !t.makeRoom(c.client) {
		t.refuse(raw)
		return nil
	}
	for t.open >= t.most && !t.makeRoom(netip.Prefix{}) {
		if t.closed {
			raw.Close()
			return nil
		}
		again := time.AfterFunc(soon, t.changed.Broadcast) // somebody's patience may have ended
		t.changed.Wait()
		again.Stop()
	}
	t.open++
	t.clients[c.client]++
	t.move(c, connIdle)
	return c
}

// clientOf is whose connection it is: the address, or the network of 64 bits
// that an IPv6 host has to itself. It is invalid where there is no address.
func clientOf(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	addr := tcp.AddrPort().Addr().Unmap().WithZone("")
	p, _ := addr.Prefix(min(addr.BitLen(), 64))
	return p
}

// makeRoom closes the connection that has to give way, of one client to another of
// its own or (with the zero client) of all; false: there is none. The caller holds
// the lock.
func (t *conns) makeRoom(client netip.Prefix) bool {
	now, looks := time.Now(), 0
	for state := range t.waiting {
		for e := t.waiting[state].Front(); e != nil; e = e.Next() {
			c := e.Value.(*conn)
			if !client.IsValid() && now.Sub(c.since) < patience[state] {
				break // so are all behind it
			}
			if client.IsValid() && c.client != client {
				continue
			}
			if state == connIdle && c.hasRequest() {
				if looks++; looks == mostLooks {
					break
				}
				continue
			}
			t.drop(c)
			c.Conn.Close()
			return true
		}
	}
	return false
}

// mostLooks bounds how many sockets are looked into for one newcomer.
const mostLooks = 64

// move brings a connection into a state. The caller holds the lock.
func (t *conns) move(c *conn, state int) {
	if c.gone {
		return
	}
	t.unlist(c)
	c.state, c.since = state, time.Now()
	c.quiet.Store(state == connIdle)
	if state != connBusy {
		c.place = t.waiting[state].PushBack(c)
		t.changed.Broadcast()
	}
}

func (t *conns) unlist(c *conn) {
	if c.place != nil {
		t.waiting[c.state].Remove(c.place)
		c.place = nil
	}
}

// drop takes a connection out of the table. The caller holds the lock.
func (t *conns) drop(c *conn) {
	if c.gone {
		return
	}
	t.unlist(c)
	c.gone = true
	t.open--
	if t.clients[c.client]--; t.clients[c.client] == 0 {
		delete(t.clients, c.client)
	}
	t.changed.Broadcast()
}

// dismissWaiting closes every connection on which no answer is under way.
func (t *conns) dismissWaiting() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, state := range []int{connIdle, connHeader} {
		for e := t.waiting[state].Front(); e != nil; e = t.waiting[state].Front() {
			c := e.Value.(*conn)
			t.drop(c)
			c.Conn.Close()
		}
	}
}

// Close ends Accept.
func (t *conns) Close() error {
	t.mu.Lock()
	t.closed = true
	t.changed.Broadcast()
	t.mu.Unlock()
	return t.Listener.Close()
}
