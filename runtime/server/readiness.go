package server

import (
	"net/http"
	"strconv"
	"sync"

	"sandwich/runtime/api"
)

// readiness is where a server stands between its start and its end: it loads,
// it is ready, or it drains. It counts the answers under way, so that a server
// that drains knows when the last one has ended.
type readiness struct {
	mu       sync.Mutex
	ready    bool
	stage    string  // of loading
	share    float64 // of that stage
	draining bool
	answers  int
	ended    chan struct{} // closed when draining and no answer is under way
}

// Progress says how far loading is: what is done now, and which share of that.
// It may be called from several goroutines, whose shares may come out of order.
func (s *Server) Progress(stage string, share float64) {
	r := &s.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	if stage != r.stage {
		r.stage, r.share = stage, 0
	}
	r.share = min(max(r.share, share), 1)
}

// Ready lets requests in, which g answers from now on. It is called once, on a
// server that New made without a Generator.
func (s *Server) Ready(g Generator) {
	r := &s.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	s.gen, r.ready = g, true // the lock is what lets enter's callers read gen
}

// enter counts an answer that begins, or refuses it.
func (r *readiness) enter() *apiError {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.draining:
		return asAPIError(api.ErrClosed, false)
	case !r.ready:
		e := newError(http.StatusServiceUnavailable, typeServer, "loading", "the model is loading; try again later")
		e.retryAfter = 2
		return e
	}
	r.answers++
	return nil
}

// leave ends what enter began.
func (r *readiness) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers--
	if r.draining && r.answers == 0 {
		close(r.ended)
	}
}

// drain lets no further answer begin and returns what is closed when the last one
// has ended.
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

// unready is the body of /health where the server is not ready; nil: it is.
func (r *readiness) unready() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.draining:
		return []byte(`{"status":"shutting down"}`)
	case r.ready:
		return nil
	}
	b := appendString([]byte(`{"status":"loading","stage":`), r.stage)
	b = strconv.AppendFloat(append(b, `,"progress":`...), r.share, 'f', 2, 64)
	return append(b, '}')
}

func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	if body := s.readiness.unready(); body != nil {
		writeJSON(w, http.StatusServiceUnavailable, body)
		return
	}
	if g, ok := s.gen.(readier); ok {
		if err := g.Ready(); err != nil {
			body := appendString([]byte(`{"status":"unavailable","reason":`), err.Error())
			writeJSON(w, http.StatusServiceUnavailable, append(body, '}'))
			return
		}
	}
	writeJSON(w, http.StatusOK, []byte(`{"status":"ok"}`))
}

// admitted serves a request that needs the model, where the server takes it.
func (s *Server) admitted(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
	if fail := s.readiness.enter(); fail != nil {
		w.Header().Set("Connection", "close") // whoever asks again had better ask a server that is ready
		fail.write(w)
		return
	}
	defer s.readiness.leave()
	serve(w, r)
}
