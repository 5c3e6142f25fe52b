package server

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// States of a connection. In every state but connBusy it waits for its client and may give way.
const (
	connIdle    = iota // nothing has arrived since it was opened or since the last answer
	connHeader         // a header has begun to arrive
	connLingers        // the request is refused, and the rest of its body is discarded
	connBody           // the body of a request is arriving
	connBusy           // a request is being answered
	connStates  = connBusy
)

// conn is one connection of the table. A nil *conn stands for a request that did not come over one
// (in tests); its methods do nothing.
type conn struct {
	net.Conn
	table   *conns
	client  *client
	watched atomic.Bool // Read reports what arrives to the table

	halfClosed bool // of the goroutine that serves the connection

	// The table's lock guards what follows.
	state     int
	used      bool             // a request has arrived
	began     time.Time        // start of the state
	since     time.Time        // start of the state, or the last bytes of a body
	covered   time.Time        // until then the bytes of a body that arrived are fast enough
	allowance time.Duration    // for a body, whatever its rate
	got       int64            // bytes of a body
	places    [2]*list.Element // in the queues of the table and of the client; nil: busy or gone
	gone      bool             // not in the table
}

type connKey struct{}

// withConn is the ConnContext of an http.Server over a table.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// connOf returns the connection that a request came over, or nil.
func connOf(r *http.Request) *conn {
	c, _ := r.Context().Value(connKey{}).(*conn)
	return c
}

// follow is the ConnState of an http.Server over a table.
func (t *conns) follow(nc net.Conn, state http.ConnState) {
	c, ok := nc.(*conn)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch state {
	case http.StateActive: // the header is complete; Read notices earlier that one has begun
		c.used = true
		t.move(c, connBusy)
	case http.StateIdle:
		t.move(c, connIdle)
	}
}

// receive begins a body. It has to arrive within the allowance and one more second for each
// minBodyRate bytes of it.
func (c *conn) receive(allowance time.Duration) { c.take(connBody, allowance) }

// discard begins the end of a body that nothing reads any more.
func (c *conn) discard() { c.take(connLingers, lingerTime) }

func (c *conn) take(state int, allowance time.Duration) {
	if c == nil {
		return
	}
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.table.move(c, state)
	c.allowance = allowance
	c.extend()
}

// extend moves the read deadline to where the bytes that arrived allow it.
func (c *conn) extend() {
	_ = c.Conn.SetReadDeadline(c.began.Add(c.allowance + bodyTime(c.got)))
}

// bodyTime returns how long bytes of a body may take.
func bodyTime(bytes int64) time.Duration {
	return time.Duration(float64(bytes) / minBodyRate * float64(time.Second))
}

// received ends a body: it is complete, and from now on a silent client is not at fault.
func (c *conn) received() {
	if c == nil {
		return
	}
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.table.move(c, connBusy)
	_ = c.Conn.SetReadDeadline(time.Time{})
}

// receives reports whether a body is not complete.
func (c *conn) receives() bool {
	if c == nil {
		return false
	}
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	return c.state == connBody && !c.gone
}

// displaced reports whether the table closed the connection for another one.
func (c *conn) displaced() bool {
	if c == nil {
		return false
	}
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	return c.gone
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.watched.Load() {
		c.arrived(n)
	}
	return n, err
}

// arrived notes that bytes arrived while the connection waited for its client.
func (c *conn) arrived(n int) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	switch {
	case c.gone:
	case c.state == connIdle:
		c.table.move(c, connHeader)
	case c.state == connBody, c.state == connLingers:
		now := time.Now()
		c.got += int64(n)
		if c.covered.Before(now) {
			c.covered = now
		}
		if c.covered = c.covered.Add(bodyTime(int64(n))); c.covered.Sub(now) > bodyCredit {
			c.covered = now.Add(bodyCredit)
		}
		c.since = now
		c.table.waiting[c.state].MoveToBack(c.places[0])
		c.client.waiting[c.state].MoveToBack(c.places[1])
		c.extend()
	}
}

// Write fails where the client takes nothing for the table's write timeout.
func (c *conn) Write(p []byte) (int, error) {
	_ = c.Conn.SetWriteDeadline(time.Now().Add(c.table.writeTimeout))
	return c.Conn.Write(p)
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.table.mu.Lock()
	c.table.drop(c)
	c.table.mu.Unlock()
	return err
}
