package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/conntable"
)

// drainTimeout bounds the time for canceled handlers to send their error and for sockets to send
// buffered data.
const drainTimeout = 2 * time.Second

// secured is a listener whose connections use TLS.
type secured struct {
	net.Listener
	config *tls.Config
}

// Secure returns a listener on whose connections Serve and ServeHealth use TLS.
func Secure(ln net.Listener, config *tls.Config) net.Listener { return &secured{ln, config} }

// serveOn serves srv on listeners whose connections the table bounds. The channel receives the
// error of each listener when it ends.
func serveOn(srv *http.Server, table *conntable.Table, listeners []net.Listener) <-chan error {
	failed := make(chan error, len(listeners))
	for _, ln := range listeners {
		var config *tls.Config
		if s, ok := ln.(*secured); ok {
			ln, config = s.Listener, s.config
		}
		go func() { failed <- srv.Serve(table.Listen(ln, config)) }()
	}
	return failed
}

// Serve serves HTTP on listeners until ctx ends. For Options.DrainDelay it then still accepts
// requests, while /health has status 503. After that it refuses requests with status 503, waits for
// running answers up to Options.Grace, cancels the rest and returns nil. It closes the listeners
// and returns an error only if one of them fails. The bounds of connections hold for all listeners
// together.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	base, cut := context.WithCancelCause(context.Background())
	defer cut(nil)
	table := conntable.New(conntable.Options{Most: s.opts.MaxConns, MostClient: s.opts.ClientConns,
		WriteTimeout: s.opts.WriteTimeout, Refusal: tooManyConnections})
	if l := s.opts.Log; l != nil && table.Most() < s.opts.MaxConns {
		l.Warn("the limit of open files (ulimit -n) reduces the number of connections; raise it",
			"connections", table.Most(), "wanted", s.opts.MaxConns)
	}
	srv := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.opts.HeaderTimeout,
		IdleTimeout:       s.opts.IdleTimeout,
		MaxHeaderBytes:    s.opts.MaxHeader,
		ErrorLog:          s.opts.ErrorLog,
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnContext:       conntable.ConnContext,
		ConnState:         connState(table),
	}
	failed := serveOn(srv, table, listeners)
	select {
	case err := <-failed:
		cut(api.ErrClosed)
		srv.Close()
		return err
	case <-ctx.Done():
	}
	if err := s.awaitDrainDelay(failed); err != nil {
		cut(api.ErrClosed)
		srv.Close()
		return err
	}
	s.drain(srv, table, cut)
	for range listeners {
		if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
			return err
		}
	}
	return nil
}

// awaitDrainDelay reports the shutdown at /health and waits for Options.DrainDelay. It returns
// early if the server accepts no requests, at Options.Hurry, or with the error of the listener.
func (s *Server) awaitDrainDelay(failed <-chan error) error {
	if accepts := s.readiness.leave(); !accepts || s.opts.DrainDelay <= 0 {
		return nil
	}
	select {
	case err := <-failed:
		return err
	case <-s.opts.Hurry:
	case <-time.After(s.opts.DrainDelay):
	}
	return nil
}

// tooManyConnections returns the response to a connection that exceeds a limit.
func tooManyConnections(bound string) []byte {
	body := apierr.New(http.StatusServiceUnavailable, apierr.TypeLimit, "too_many_connections",
		"%s has reached the limit of requests in progress; try again later", bound).Body()
	return fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"+
		"Retry-After: 1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// connState returns the ConnState hook of an http.Server for a table.
func connState(table *conntable.Table) func(net.Conn, http.ConnState) {
	return func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateActive:
			table.Active(c)
		case http.StateIdle:
			table.Idle(c)
		}
	}
}

// drain shuts srv down when the last answer has ended. Until then it accepts connections and tells
// clients that the server is shutting down.
func (s *Server) drain(srv *http.Server, table *conntable.Table, cut context.CancelCauseFunc) {
	until := time.Now().Add(s.opts.Grace)
	ended := s.readiness.drain()
	stopDismissing := dismissStalled(table)
	select {
	case <-ended:
	case <-time.After(s.opts.Grace):
		cut(api.ErrClosed) // ends every Generate; the handlers send an error
		select {
		case <-ended:
		case <-time.After(drainTimeout):
		}
	}
	stopDismissing()
	table.DismissWaiting() // net/http would wait for some of them
	rest, cancel := context.WithTimeout(context.Background(), max(time.Until(until), drainTimeout))
	defer cancel()
	if srv.Shutdown(rest) != nil {
		srv.Close()
	}
}

// dismissStalled closes connections whose requests may never complete, until stop is called.
func dismissStalled(table *conntable.Table) (stop func()) {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			table.DismissStalled()
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return stop
}

// ServeHealth serves /health and /metrics on separate listeners until ctx ends. It is independent
// of the load of the other listeners and needs no key. It closes the listeners and returns an error
// only if one of them fails.
func (s *Server) ServeHealth(ctx context.Context, listeners ...net.Listener) error {
	const timeout = 5 * time.Second
	table := conntable.New(conntable.Options{Most: healthConns, MostClient: healthConns, WriteTimeout: timeout,
		Refusal: tooManyConnections})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", s.health)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) { s.serveReady(w, r, s.metrics) })
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength != 0 {
				conntable.Of(r.Context()).Discard()
			}
			mux.ServeHTTP(w, r)
		}),
		ReadTimeout: timeout, IdleTimeout: s.opts.IdleTimeout, MaxHeaderBytes: s.opts.MaxHeader,
		ErrorLog: s.opts.ErrorLog, ConnContext: conntable.ConnContext, ConnState: connState(table),
	}
	failed := serveOn(srv, table, listeners)
	select {
	case err := <-failed:
		srv.Close()
		return err
	case <-ctx.Done():
		srv.Close()
	}
	for range listeners {
		<-failed
	}
	return nil
}

// healthConns bounds the connections of ServeHealth.
const healthConns = 256
