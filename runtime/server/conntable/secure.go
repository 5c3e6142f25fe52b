package conntable

import (
	"crypto/tls"
	"errors"
	"io"
)

// secureConn is a TLS connection over a connection of a Table. It is not a *tls.Conn, so that
// net/http calls its CloseWrite, which lets a client that still sends a body read the answer.
//
// Until the handshake is complete, the connection counts as one without a request and is displaced
// as early as those. Its duration is limited like that of a header.
type secureConn struct {
	*tls.Conn
	below *Conn
	ready bool // the handshake is complete; used by the reading goroutine only
}

// plainText is the answer to a client that speaks HTTP to a listener with TLS.
const plainText = "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" +
	"this address requires TLS; use https\n"

func (s *secureConn) tableConn() *Conn { return s.below }

// Read completes the handshake and reads from the client.
func (s *secureConn) Read(p []byte) (int, error) {
	if !s.ready {
		if err := s.Conn.Handshake(); err != nil {
			var header tls.RecordHeaderError
			if errors.As(err, &header) && header.Conn != nil && looksLikeHTTP(header.RecordHeader[:]) {
				_, _ = io.WriteString(header.Conn, plainText)
			}
			return 0, io.EOF // net/http closes the connection without an answer
		}
		s.ready = true
		s.below.handshaking.Store(false)
		s.below.table.enter(s.below, stateIdle, false)
	}
	return s.Conn.Read(p)
}

// Close sends the alert that ends TLS and closes the connection.
func (s *secureConn) Close() error {
	s.below.closing.Store(true)
	return s.Conn.Close()
}

// CloseWrite ends the answer like Conn.CloseWrite.
func (s *secureConn) CloseWrite() error {
	_ = s.Conn.CloseWrite() // fails if the client is gone
	return s.below.CloseWrite()
}

// looksLikeHTTP reports whether the first five bytes of a client begin a request without TLS.
func looksLikeHTTP(start []byte) bool {
	switch string(start) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET", "PATCH":
		return true
	}
	return false
}
