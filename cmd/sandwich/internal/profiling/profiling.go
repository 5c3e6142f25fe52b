// Package profiling serves profiles of the process in the format of go tool pprof.
package profiling

import (
	"context"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// Serve serves profiles under /debug/pprof/ until ctx ends. ln must be unreachable from other
// machines. Serve closes ln and returns an error only if it fails.
func Serve(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{Handler: handler(), ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	if err := srv.Serve(ln); ctx.Err() == nil {
		return err
	}
	return nil
}

// handler returns the handler of the profiles. It refuses requests whose Host is not a loopback
// name, which a page of another site may send after it changed its DNS entry.
func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !localName(r.Host) {
			http.Error(w, "profiles are served to this machine only; use a loopback address",
				http.StatusMisdirectedRequest)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// localName reports whether a Host header names a loopback address.
func localName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
