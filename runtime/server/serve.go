package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// Serve answers on ln until ctx ends, then lets the answers under way finish for
// Options.Grace, cuts those that have not, and returns nil. /health says 503 from
// the moment ctx ends, and new requests are refused. It closes ln and returns an
// error only where ln fails.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	base, cut := context.WithCancelCause(context.Background())
	defer cut(nil)
	srv := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.opts.HeaderTimeout,
		IdleTimeout:       s.opts.IdleTimeout,
		MaxHeaderBytes:    s.opts.MaxHeader,
		ErrorLog:          s.opts.ErrorLog,
		BaseContext:       func(net.Listener) context.Context { return base },
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(newBounded(ln, s.opts.MaxConns)) }()

	select {
	case err := <-failed:
		cut(ErrClosed)
		srv.Close()
		return err
	case <-ctx.Done():
	}
	s.draining.Store(true)
	grace, cancel := context.WithTimeout(context.Background(), s.opts.Grace)
	defer cancel()
	if srv.Shutdown(grace) != nil {
		// Cutting the contexts ends every Generate; the handlers then say so to
		// their clients, for which they get a moment.
		cut(ErrClosed)
		moment, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if srv.Shutdown(moment) != nil {
			srv.Close()
		}
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// bounded is a listener that has at most as many connections open as it has
// places; further clients wait in the backlog of the operating system.
type bounded struct {
	net.Listener
	places chan struct{}
	done   chan struct{}
	once   sync.Once
}

func newBounded(ln net.Listener, n int) *bounded {
	return &bounded{Listener: ln, places: make(chan struct{}, n), done: make(chan struct{})}
}

func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.places <- struct{}{}:
	case <-b.done:
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.places
		return nil, err
	}
	return &placed{Conn: c, leave: func() { <-b.places }}, nil
}

func (b *bounded) Close() error {
	b.once.Do(func() { close(b.done) })
	return b.Listener.Close()
}

// placed gives its place back when it is closed.
type placed struct {
	net.Conn
	leave func()
	once  sync.Once
}

func (p *placed) Close() error {
	err := p.Conn.Close()
	p.once.Do(p.leave)
	return err
}

// CloseWrite lets net/http end an answer before it closes a connection whose
// body it does not read to the end, so that the client sees the answer.
func (p *placed) CloseWrite() error {
	if c, ok := p.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}
