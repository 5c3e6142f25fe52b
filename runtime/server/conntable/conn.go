package conntable

import (
	"container/list"
	"context"
	"net"
	"sync/atomic"
	"time"
)

// States of a connection. In every state but stateBusy it waits for its client and may give way.
const (
	stateIdle    = iota // nothing has arrived since it was opened or since the last answer
	stateHeader         // a header has begun to arrive
	stateLingers        // the request is refused, and the rest of its body is discarded
	stateBody           // the body of a request is arriving
	stateBusy           // a request is being answered
	states       = stateBusy
)

// Conn is one connection of the table. A nil *Conn stands for a request that did not come over one
// (in tests); its methods do nothing.
type Conn struct {
	net.Conn
	table   *Table
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

type contextKey struct{}

// ConnContext returns a context with a connection of a table. It is the hook of that name of an
// http.Server.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// Of returns the connection of the context of a request, or nil where it came over no table.
func Of(ctx context.Context) *Conn {
	c, _ := ctx.Value(contextKey{}).(*Conn)
	return c
}

// Active notes that the header of a request is complete. Read notices earlier that one has begun.
func (t *Table) Active(c net.Conn) { t.enter(c, stateBusy) }

// Idle notes that the answer to a request is complete.
func (t *Table) Idle(c net.Conn) { t.enter(c, stateIdle) }

func (t *Table) enter(nc net.Conn, state int) {
	if c, ok := nc.(*Conn); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		c.used = true
		t.move(c, state)
	}
}

// Receive begins a body. It has to arrive within the allowance and one more second for each
// MinBodyRate bytes of it.
func (c *Conn) Receive(allowance time.Duration) { c.take(stateBody, allowance) }

// Discard begins the end of a body that nothing reads any more.
func (c *Conn) Discard() { c.take(stateLingers, lingerTime) }

func (c *Conn) take(state int, allowance time.Duration) {
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
func (c *Conn) extend() {
	_ = c.Conn.SetReadDeadline(c.began.Add(c.allowance + bodyTime(c.got)))
}

// bodyTime returns how long bytes of a body may take.
func bodyTime(bytes int64) time.Duration {
	return time.Duration(float64(bytes) / MinBodyRate * float64(time.Second))
}

// Received ends a body: it is complete, and from now on a silent client is not at fault.
func (c *Conn) Received() {
	if c == nil {
		return
	}
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.table.move(c, stateBusy)
	_ = c.Conn.SetReadDeadline(time.Time{})
}

// Receives reports whether a body has begun and is not complete.
func (c *Conn) Receives() bool {
	if c == nil {
		return false
	}
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	return c.state == stateBody && !c.gone
}

// Displaced reports whether the table closed the connection for another one.
func (c *Conn) Displaced() bool {
	if c == nil {
		return false
	}
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	return c.gone
}

// Read tells the table what arrives.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.watched.Load() {
		c.arrived(n)
	}
	return n, err
}

// arrived notes that bytes arrived while the connection waited for its client.
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

// Write fails where the client takes nothing for the table's write timeout.
func (c *Conn) Write(p []byte) (int, error) {
	_ = c.Conn.SetWriteDeadline(time.Now().Add(c.table.options.WriteTimeout))
	return c.Conn.Write(p)
}

// Close removes the connection from the table, too.
func (c *Conn) Close() error {
	err := c.Conn.Close()
	c.table.mu.Lock()
	c.table.drop(c)
	c.table.mu.Unlock()
	return err
}
