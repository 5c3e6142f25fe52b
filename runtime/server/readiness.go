package server

import (
	"net/http"
	"strconv"
	"sync"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/jsontext"
)

// readiness is the state of a server: loading, ready, leaving or draining. A leaving server reports
// its shutdown but accepts requests. A draining one counts those that run, so that draining ends
// when the last one has finished.
type readiness struct {
	mu       sync.Mutex
	ready    bool
	stage    string  // current stage of loading
	share    float64 // completed fraction of the stage
	leaving  bool
	draining bool
	answers  int
	ended    chan struct{} // closed once the server drains and no request runs
}

// Progress reports the current stage of loading and its completed fraction. It may be called
// concurrently; a smaller fraction of the same stage is ignored.
func (s *Server) Progress(stage string, share float64) {
	r := &s.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	if stage != r.stage {
		r.stage, r.share = stage, 0
	}
	r.share = min(max(r.share, share), 1)
}

// Ready starts to accept requests, which g answers. It must be called once on a server that New
// created without a Generator.
func (s *Server) Ready(g generation.Generator) { s.ReadyFor(generation.One(g)) }

// ReadyFor is Ready for several models, of which the router chooses one for each request.
func (s *Server) ReadyFor(models generation.Router) {
	r := &s.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	s.run.Router, r.ready = models, true // enter's lock orders this write before reads of Router
}

// enter counts a request, or returns an error if the server is not ready.
func (r *readiness) enter() *apierr.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.draining:
		return apierr.From(api.ErrClosed, false)
	case !r.ready:
		e := apierr.New(http.StatusServiceUnavailable, apierr.TypeServer, "loading",
			"the model is loading; try again later")
		e.RetryAfter = 2
		return e
	}
	r.answers++
	return nil
}

// exit ends a request.
func (r *readiness) exit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers--
	if r.draining && r.answers == 0 {
		close(r.ended)
	}
}

// leave reports the shutdown from now on, and whether the server accepts requests.
func (r *readiness) leave() (accepts bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaving = true
	return r.ready
}

// isLeaving reports whether the server is about to shut down.
func (r *readiness) isLeaving() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leaving || r.draining
}

// drain refuses further requests and returns a channel that is closed when the last running one has
// ended.
func (r *readiness) drain() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.draining {
		r.draining, r.ended = true, make(chan struct{})
		if r.answers == 0 {
			close(r.ended)
		}
	}
	return r.ended
}

// unready returns the body of /health if the server is not ready, else nil.
func (r *readiness) unready() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.draining, r.leaving:
		return []byte(`{"status":"shutting down"}`)
	case r.ready:
		return nil
	}
	b := jsontext.AppendString([]byte(`{"status":"loading","stage":`), r.stage)
	b = strconv.AppendFloat(append(b, `,"progress":`...), r.share, 'f', 2, 64)
	return append(b, '}')
}

// health handles /health.
func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	if body := s.readiness.unready(); body != nil {
		jsontext.Write(w, http.StatusServiceUnavailable, body)
		return
	}
	if err := s.run.Router.Ready(); err != nil {
		body := jsontext.AppendString([]byte(`{"status":"unavailable","reason":`), err.Error())
		jsontext.Write(w, http.StatusServiceUnavailable, append(body, '}'))
		return
	}
	jsontext.Write(w, http.StatusOK, []byte(`{"status":"ok"}`))
}

// serveReady serves a request that needs the model, if the server is ready.
func (s *Server) serveReady(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
	if fail := s.readiness.enter(); fail != nil {
		w.Header().Set("Connection", "close") // the client should reconnect to a server that is ready
		fail.Write(w)
		return
	}
	defer s.readiness.exit()
	serve(w, r)
}
