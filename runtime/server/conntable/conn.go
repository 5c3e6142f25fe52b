package conntable

import (
	"container/list"
	"context"
	"math"
	"net"
	"sync/atomic"
	"time"
)

// States of a connection. In every state but stateBusy it waits for its client and may be
// displaced.
const (
	stateIdle    = iota // nothing has arrived since it was opened or since the last answer
	stateHeader         // a header has begun to arrive
	stateLingers        // the request was refused, and the rest of its body is discarded
	stateBody           // the body of a request is arriving
	stateBusy           // a request is being answered
	states       = stateBusy
)

// Conn is one connection of a Table. A nil *Conn represents a request that did not arrive through a
// Table, as in tests; its methods do nothing.
type Conn struct {
	net.Conn
	table   *Table
	client  *client
	watched atomic.Bool // Read reports what arrives to the table

	encrypted   bool        // bytes of the client are those of TLS
	handshaking atomic.Bool // the TLS handshake is not complete
	closing     atomic.Bool // a TLS connection is being closed

	halfClosed bool // used by the serving goroutine only

	// The table's lock guards the following fields.
	state     int
	used      bool             // a request has arrived
	began     time.Time        // start of the state
	since     time.Time        // start of the state, or arrival of the last bytes of a body
	covered   time.Time        // the body arrived fast enough up to this time
	allowance time.Duration    // time for a body regardless of its rate
	max       time.Duration    // bound of the time for a body
	got       int64            // bytes of the body received
	places    [2]*list.Element // in the queues of the table and of the client; nil: busy or gone
	gone      bool             // removed from the table
}

type contextKey struct{}

// ConnContext adds a connection of a Table to a context. It is used as http.Server.ConnContext.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, contextKey{}, connOf(c))
}

// connOf returns the connection of a Table that c is or uses, nil if c does not come from a Table.
func connOf(c net.Conn) *Conn {
	if t, ok := c.(interface{ tableConn() *Conn }); ok {
		return t.tableConn()
	}
	return nil
}

func (c *Conn) tableConn() *Conn { return c }

// Of returns the connection of a request's context, or nil if the request did not arrive through a
// Table.
func Of(ctx context.Context) *Conn {
	c, _ := ctx.Value(contextKey{}).(*Conn)
	return c
}

// Active records that the header of a request is complete. Read detects earlier that one has begun.
func (t *Table) Active(c net.Conn) { t.enter(connOf(c), stateBusy, true) }

// Idle records that the answer to a request is complete.
func (t *Table) Idle(c net.Conn) { t.enter(connOf(c), stateIdle, true) }

// enter changes the state of a connection. used reports whether a request has arrived.
func (t *Table) enter(c *Conn, state int, used bool) {
	if c != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		c.used = used
		t.move(c, state)
	}
}

// Receive starts a body. It must arrive within the allowance plus one second for each MinBodyRate
// bytes.
func (c *Conn) Receive(allowance time.Duration) { c.take(stateBody, allowance, math.MaxInt64) }

// Discard records that the handler no longer reads the body.
func (c *Conn) Discard() { c.take(stateLingers, lingerTime, math.MaxInt64) }

// take starts to receive a body, or to discard it. It must arrive within the allowance plus one
// second for each MinBodyRate bytes, and within limit.
func (c *Conn) take(state int, allowance, limit time.Duration) {
	if c == nil {
		return
	}
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.table.move(c, state)
	c.allowance, c.max = allowance, limit
	c.extend()
}

// extend moves the read deadline according to the bytes that arrived.
func (c *Conn) extend() {
	_ = c.Conn.SetReadDeadline(c.began.Add(min(c.allowance+bodyTime(c.got), c.max)))
}

// bodyTime returns the time allowed for bytes of a body.
func bodyTime(bytes int64) time.Duration {
	return time.Duration(float64(bytes) / MinBodyRate * float64(time.Second))
}

// Received records that the body is complete; a silent client is no longer at fault.
func (c *Conn) Received() {
	if c == nil {
		return
	}
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.table.move(c, stateBusy)
	_ = c.Conn.SetReadDeadline(time.Time{})
}

// Receives reports whether a body has started and is not complete.
func (c *Conn) Receives() bool {
	if c == nil {
		return false
	}
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	return c.state == stateBody && !c.gone
}

// Displaced reports whether the table closed the connection to make room for another one.
func (c *Conn) Displaced() bool {
	if c == nil {
		return false
	}
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	return c.gone
}

// Read reads from the client and records the progress in the table.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.watched.Load() && !c.handshaking.Load() {
		c.arrived(n)
	}
	return n, err
}

// arrived records that bytes arrived while the connection waited for its client.
func (c *Conn) arrived(n int) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	switch {
	case c.gone:
	case c.state == stateIdle:
		c.table.move(c, stateHeader)
	case c.state == stateBody, c.state == stateLingers:
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

// alertTimeout limits the wait for a client that does not read to take the alert that ends TLS.
const alertTimeout = 100 * time.Millisecond

// Write fails if the client reads nothing for the table's write timeout.
func (c *Conn) Write(p []byte) (int, error) {
	limit := c.table.options.WriteTimeout
	if c.closing.Load() {
		limit = alertTimeout
	}
	_ = c.Conn.SetWriteDeadline(time.Now().Add(limit))
	return c.Conn.Write(p)
}

// Close closes the connection and removes it from the table.
func (c *Conn) Close() error {
	err := c.Conn.Close()
	c.table.mu.Lock()
	c.table.drop(c)
	c.table.mu.Unlock()
	return err
}
