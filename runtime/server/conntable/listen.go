package conntable

import (
	"crypto/tls"
	"errors"
	"net"
	"syscall"
)

// listener admits the connections of one listener to a Table.
type listener struct {
	net.Listener
	table  *Table
	secure *tls.Config // nil: no TLS
}

// Listen returns a listener whose connections are those of ln that the table admits. If secure is
// not nil, they use TLS. A handshake takes place in the first Read, within the deadlines of the
// connection.
func (t *Table) Listen(ln net.Listener, secure *tls.Config) net.Listener {
	return &listener{ln, t, secure}
}

// Accept returns the next connection that is admitted and refuses others itself.
func (l *listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			if l.table.freeOne() {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		switch c := l.table.admit(raw, l.secure); {
		case c == nil:
		case l.secure != nil:
			return &secureConn{Conn: tls.Server(c, l.secure), below: c}, nil
		default:
			return c, nil
		}
	}
}
