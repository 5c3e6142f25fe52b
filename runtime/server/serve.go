package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"sandwich/runtime/api"
)

// lastWord is what a handler that was cut has to tell its client, and a socket to
// send what was written.
const lastWord = 2 * time.Second

// Serve answers on ln until ctx ends, then lets the answers under way finish for
// Options.Grace, cuts those that have not, and returns nil. From the moment ctx
// ends until it returns, /health says 503, and so do new requests. It closes ln
// and returns an error only where ln fails.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	base, cut := context.WithCancelCause(context.Background())
	defer cut(nil)
	table := newConns(ln, s.opts.MaxConns, s.opts.ClientConns, s.opts.WriteTimeout)
	if l := s.opts.Log; l != nil && table.most < s.opts.MaxConns {
		l.Warn("the limit of open files (ulimit -n) bounds the connections", "connections", table.most,
			"wanted", s.opts.MaxConns)
	}
	srv := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.opts.HeaderTimeout,
		IdleTimeout:       s.opts.IdleTimeout,
		MaxHeaderBytes:    s.opts.MaxHeader,
		ErrorLog:          s.opts.ErrorLog,
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnContext:       withConn,
		ConnState:         table.follow,
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(table) }()

	select {
	case err := <-failed:
		cut(api.ErrClosed)
		srv.Close()
		return err
	case <-ctx.Done():
	}
	s.drain(srv, table, cut)
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// drain ends srv when the last answer has ended. Until then it goes on listening,
// so that whoever asks hears that this server ends.
func (s *Server) drain(srv *http.Server, table *conns, cut context.CancelCauseFunc) {
	until := time.Now().Add(s.opts.Grace)
	ended := s.readiness.drain()
	table.dismiss(tierStalled, connBody) // requests that may never be complete
	select {
	case <-ended:
	case <-time.After(s.opts.Grace):
		cut(api.ErrClosed) // ends every Generate; the handlers then say so to their clients
		select {
		case <-ended:
		case <-time.After(lastWord):
		}
	}
	table.dismiss(tierKept, connIdle, connHeader, connBody) // net/http would wait for some of them
	rest, cancel := context.WithTimeout(context.Background(), max(time.Until(until), lastWord))
	defer cancel()
	if srv.Shutdown(rest) != nil {
		srv.Close()
	}
}

// ServeHealth answers /health, and nothing else, on a listener of its own until ctx ends. It
// answers probes however many clients the other listener has, asks for no key, and shows nothing
// that would need one. It closes ln and returns an error only where ln fails.
func (s *Server) ServeHealth(ctx context.Context, ln net.Listener) error {
	const timeout = 5 * time.Second
	table := newConns(ln, healthConns, healthConns, timeout)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", s.health)
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength != 0 {
				connOf(r).discard()
			}
			mux.ServeHTTP(w, r)
		}),
		ReadTimeout: timeout, IdleTimeout: s.opts.IdleTimeout, MaxHeaderBytes: s.opts.MaxHeader,
		ErrorLog: s.opts.ErrorLog, ConnContext: withConn, ConnState: table.follow,
	}
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	if err := srv.Serve(table); ctx.Err() == nil {
		return err
	}
	return nil
}

// healthConns bounds the connections of ServeHealth.
const healthConns = 256
