package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Bounds of what a client may still send after its request was refused. An answer is lost where its
// connection is closed while bytes of the client are unread: TCP then resets the connection, and
// many clients write everything before they read.
const (
	lingerTime  = 4 * time.Second
	lingerBytes = 256 << 20
	discardMost = 256 << 10 // of a body, to use the connection again
)

// linger discards what the peer sends, within bounds, until it closes the connection.
func linger(c net.Conn) {
	_ = c.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, c, lingerBytes)
}

// endBody sends the answer to a request whose body the handler has not read to its end, and
// discards the rest of the body.
func (c *conn) endBody(w http.ResponseWriter, r *http.Request, late bool) {
	if !c.receives() {
		return
	}
	if !late {
		c.discard()
		if r.Header.Get("Expect") != "" {
			return // the client waits for the answer before it sends the body
		}
		if !r.Close && r.ContentLength <= discardMost {
			if _, err := io.CopyN(io.Discard, r.Body, discardMost); err == io.EOF {
				return // the connection can be used again
			}
		}
	}
	if http.NewResponseController(w).Flush() == nil {
		_ = c.CloseWrite()
	}
}

// CloseWrite ends the answer and lingers. net/http calls it, too, before it closes a connection
// whose body it does not read to the end.
func (c *conn) CloseWrite() error {
	if c.halfClosed {
		return nil
	}
	c.halfClosed = true
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

// refuse tells the client of a connection that has no place to come back later. The number of
// clients that are told at the same time is bounded; the connections of others are only closed.
func (t *conns) refuse(c net.Conn, bound string) {
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
			"%s has as many requests under way as are accepted; try again later", bound)
		body := e.body()
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_, err := fmt.Fprintf(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"+
			"Retry-After: 1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		if err == nil && closeWrite(c) == nil {
			linger(c)
		}
	}()
}
