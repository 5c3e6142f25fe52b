package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// What a client may still send after it was refused. An answer is lost when its
// connection is closed over bytes that nobody read: TCP then resets it, and many
// clients read nothing before they have written everything.
const (
	lingerTime  = 4 * time.Second
	lingerBytes = 256 << 20
)

// linger takes what the peer still sends, within bounds, until it has read the
// answer and closes.
func linger(c net.Conn) {
	_ = c.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, c, lingerBytes)
}

// takeRest is linger where the client said that it closes the connection behind this answer:
// net/http then closes it over what is left of a body that was refused.
func takeRest(w http.ResponseWriter, r *http.Request) {
	if !r.Close || r.ContentLength == 0 || r.Header.Get("Expect") != "" {
		return
	}
	rc := http.NewResponseController(w)
	_ = rc.Flush()
	_ = rc.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, r.Body, lingerBytes)
}

// follow is the http.Server's ConnState. net/http calls a connection active only
// once a whole header is there; Read knows earlier that one has begun.
func (t *conns) follow(nc net.Conn, state http.ConnState) {
	c, ok := nc.(*conn)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch state {
	case http.StateActive:
		t.move(c, connBusy)
	case http.StateIdle:
		t.move(c, connIdle)
	}
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.quiet.Load() {
		c.table.mu.Lock()
		if c.state == connIdle {
			c.table.move(c, connHeader)
		}
		c.table.mu.Unlock()
	}
	return n, err
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.table.mu.Lock()
	c.table.drop(c)
	c.table.mu.Unlock()
	return err
}

// CloseWrite ends the answer. net/http calls it, and then waits for half a
// second, before it closes a connection whose body it does not read to the end.
func (c *conn) CloseWrite() error {
	if err := closeWrite(c.Conn); err != nil {
		return err
	}
	c.table.mu.Lock()
	c.table.move(c, connLingers)
	c.table.mu.Unlock()
	linger(c.Conn)
	return nil
}

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// refuse tells a client beyond its bound to come back. Only so many are told at
// a time; the others are closed without a word.
func (t *conns) refuse(c net.Conn) {
	select {
	case t.refusals <- struct{}{}:
	default:
		c.Close()
		return
	}
	go func() {
		defer func() { <-t.refusals }()
		defer c.Close()
		e := newError(http.StatusServiceUnavailable, typeLimit, "too_many_connections",
			"this address has %d requests under way, which is its bound; try again later", t.mostClient)
		body := e.body()
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_, err := fmt.Fprintf(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"+
			"Retry-After: 1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		if err == nil && closeWrite(c) == nil {
			linger(c)
		}
	}()
}
