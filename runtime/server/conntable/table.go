// Package conntable bounds the connections of an HTTP server, in total and per client address, and
// keeps clients that send slowly from occupying them.
//
// The listeners of an http.Server come from Table.Listen, and its hooks call ConnContext, Active
// and Idle. The handler gets the connection of a request with Of and reports the state of the
// body: Receive when it starts, Received when it is complete, Discard when the rest of it will not
// be read.
package conntable

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Table bounds the number of open connections of all its listeners together, in total and per
// client address. Its methods may be called concurrently.
//
// Accept of a listener never waits for a free place. At a bound, it displaces the first connection
// in the order of tiers. If none can be displaced, it refuses the new connection with
// Options.Refusal.
type Table struct {
	options  Options
	refusals chan struct{} // semaphore of connections that are being refused

	mu      sync.Mutex
	open    int
	clients map[netip.Prefix]*client
	waiting queues
}

// queues holds connections by state, ordered by time without progress, longest first.
type queues [states]list.List

// client is the state of one client address. The table's lock guards it.
type client struct {
	prefix  netip.Prefix
	open    int
	waiting queues
}

// Options configures a Table. All fields are required.
type Options struct {
	Most         int           // maximum number of connections
	MostClient   int           // maximum number of connections of one client address
	WriteTimeout time.Duration // for one write to a connection

	// Refusal returns the complete response to a connection above the bound that its argument
	// names.
	Refusal func(bound string) []byte
}

// New returns an empty Table. It lowers both bounds in proportion if the process may not open as
// many descriptors.
func New(o Options) *Table {
	refusals := 64
	if free, known := freeDescriptors(); known {
		refusals = max(1, min(refusals, free/8))
		if n := max(1, free/2, free-refusals-spareDescriptors); n < o.Most {
			o.Most, o.MostClient = n, max(1, o.MostClient*n/o.Most)
		}
	}
	return &Table{options: o, refusals: make(chan struct{}, refusals),
		clients: make(map[netip.Prefix]*client)}
}

// Most returns the maximum number of connections.
func (t *Table) Most() int { return t.options.Most }

// spareDescriptors is the number of descriptors reserved for the rest of the process.
const spareDescriptors = 32

// freeOne displaces a connection and reports whether there was one.
func (t *Table) freeOne() bool {
	t.mu.Lock()
	victim := t.waiting.choose(time.Now(), t.options.Most)
	t.drop(victim)
	t.mu.Unlock()
	if victim == nil {
		return false
	}
	victim.Conn.Close() // frees the descriptor before it returns
	return true
}

// admit adds a connection to the table, or refuses it and returns nil. secure is nil without TLS.
func (t *Table) admit(raw net.Conn, secure *tls.Config) *Conn {
	c, victim, bound := t.add(raw, secure != nil)
	if victim != nil {
		go victim.Conn.Close() // waits for a pending read to return
	}
	switch {
	case c != nil:
	case secure != nil:
		t.refuse(tls.Server(raw, secure), bound)
	default:
		t.refuse(raw, bound)
	}
	return c
}

// add adds a connection to the table in place of victim, if that is not nil. If a bound is reached,
// it returns a nil connection and the name of the bound.
func (t *Table) add(raw net.Conn, encrypted bool) (c, victim *Conn, bound string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	cl := t.client(clientOf(raw.RemoteAddr()))
	switch {
	case cl.prefix.IsValid() && cl.open >= t.options.MostClient:
		if victim = cl.waiting.choose(now, t.options.Most); victim == nil {
			return nil, nil, "this address"
		}
	case t.open >= t.options.Most:
		if victim = t.waiting.choose(now, cl.open+1); victim == nil {
			t.forget(cl)
			return nil, nil, "the server"
		}
	}
	t.drop(victim)
	t.clients[cl.prefix] = cl // drop may have removed it
	c = &Conn{Conn: raw, table: t, client: cl, state: stateBusy, encrypted: encrypted}
	c.handshaking.Store(encrypted)
	t.open++
	cl.open++
	t.move(c, stateIdle)
	return c, victim, ""
}

// client returns the state of a client address, creating it if necessary.
func (t *Table) client(prefix netip.Prefix) *client {
	cl := t.clients[prefix]
	if cl == nil {
		cl = &client{prefix: prefix}
		t.clients[prefix] = cl
	}
	return cl
}

// forget removes a client that has no connection.
func (t *Table) forget(cl *client) {
	if cl.open == 0 {
		delete(t.clients, cl.prefix)
	}
}

// clientOf returns the client of an address: an IPv4 address or an IPv6 /64 network, which usually
// belongs to one host. The result is invalid for sockets without an address.
func clientOf(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	addr := tcp.AddrPort().Addr().Unmap().WithZone("")
	p, _ := addr.Prefix(min(addr.BitLen(), 64))
	return p
}

// move changes the state of a connection. The caller holds the lock.
func (t *Table) move(c *Conn, state int) {
	if c.gone {
		return
	}
	t.unlist(c)
	now := time.Now()
	c.state, c.began, c.since, c.covered, c.got = state, now, now, now, 0
	c.watched.Store(state != stateBusy)
	if state != stateBusy {
		c.places = [2]*list.Element{t.waiting[state].PushBack(c), c.client.waiting[state].PushBack(c)}
	}
}

func (t *Table) unlist(c *Conn) {
	if c.places[0] != nil {
		t.waiting[c.state].Remove(c.places[0])
		c.client.waiting[c.state].Remove(c.places[1])
		c.places = [2]*list.Element{}
	}
}

// drop removes a connection from the table; nil is ignored. The caller holds the lock.
func (t *Table) drop(c *Conn) {
	if c == nil || c.gone {
		return
	}
	t.unlist(c)
	c.gone = true
	t.open--
	c.client.open--
	t.forget(c.client)
}

// DismissStalled closes connections whose requests may never complete.
func (t *Table) DismissStalled() { t.dismiss(tierStalled, stateBody) }

// DismissWaiting closes every connection without a complete request.
func (t *Table) DismissWaiting() { t.dismiss(tierKept, stateIdle, stateHeader, stateBody) }

// dismiss closes the connections in the given states up to a tier.
func (t *Table) dismiss(worst int, states ...int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for _, state := range states {
		var next *list.Element
		for e := t.waiting[state].Front(); e != nil; e = next {
			next = e.Next()
			if c := e.Value.(*Conn); c.tier(now) <= worst {
				t.drop(c)
				go c.Conn.Close()
			}
		}
	}
}
