package conntable

import (
	"errors"
	"io"
	"net"
	"time"
)

// Bounds of what a client may still send after its request was refused. If a connection is closed
// while bytes of the client are unread, TCP resets it and the answer is lost, and many clients
// write everything before they read.
const (
	lingerTime  = 4 * time.Second // plus one second for each MinBodyRate bytes, as for a body
	maxLinger   = 30 * time.Second
	lingerBytes = 256 << 20
)

// CloseWrite ends the answer and lingers: it discards the client's data, within bounds, until the
// client closes the connection. net/http also calls it before it closes a connection whose body it
// does not read to the end.
func (c *Conn) CloseWrite() error {
	if c.halfClosed {
		return nil
	}
	c.halfClosed = true
	if err := closeWrite(c.Conn); err != nil {
		return err
	}
	c.take(stateLingers, lingerTime, maxLinger)
	_, _ = io.CopyN(io.Discard, c, lingerBytes) // Read extends the deadline
	return nil
}

// refusalTime limits the refusal of a connection above a bound, with the handshake of TLS.
const refusalTime = 4 * time.Second

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// refuse sends the refusal to a connection above a limit. The number of connections that are
// refused concurrently is bounded; others are closed without an answer.
func (t *Table) refuse(c net.Conn, bound string) {
	select {
	case t.refusals <- struct{}{}:
	default:
		c.Close()
		return
	}
	go func() {
		defer func() { <-t.refusals }()
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(refusalTime)) // of the TLS handshake and the answer
		if _, err := c.Write(t.options.Refusal(bound)); err == nil && closeWrite(c) == nil {
			_ = c.SetReadDeadline(time.Now().Add(lingerTime))
			_, _ = io.CopyN(io.Discard, c, lingerBytes)
		}
	}()
}
