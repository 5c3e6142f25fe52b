package server

import (
	"io"
	"log"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"sandwich/runtime/server/conntable"
)

// Options of a server. A zero field takes the default named beside it.
type Options struct {
	APIKeys []string // as CheckKey wants them; any of them opens everything but /health; none: no key is asked for
	Hosts   []string // names that the Host header may hold, whatever the port; none, or "*": any
	Origins []string // whose pages a browser lets read the answers (CORS); "*": any; none: only the server's own

	MaxBody    int64 // bytes of one body; 8 MiB
	BodyBudget int64 // bytes of all bodies in memory; 256 MiB
	MaxHeader  int   // bytes of a header; 64 KiB

	// MaxConns bounds the connections at the same time; 4096. Beyond it an idle connection or one
	// without progress is closed for a new one. Where all are busy the new one is refused.
	MaxConns int

	// ClientConns bounds those of one address, or of one /64 network of IPv6 addresses, in the same
	// way; a quarter of MaxConns. A proxy needs one connection for each request under way.
	ClientConns int

	HeaderTimeout time.Duration // to send the header; 10 s
	BodyTimeout   time.Duration // to send the body, and a second more for each conntable.MinBodyRate bytes of it; 60 s
	WriteTimeout  time.Duration // for one write to a client; 30 s
	IdleTimeout   time.Duration // between two requests; 2 min
	Heartbeat     time.Duration // a quiet stream gets a comment this often; 10 s
	Grace         time.Duration // for answers under way when Serve ends; 30 s

	Log        *slog.Logger // a line for each request, more of them at level Debug; nil: none
	LogDropped func() int64 // lines that Log or ErrorLog could not write, for /metrics; nil: not known
	ErrorLog   *log.Logger  // of net/http; nil: the standard logger
}

func (o Options) withDefaults() Options {
	duration := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	duration(&o.HeaderTimeout, 10*time.Second)
	duration(&o.BodyTimeout, time.Minute)
	duration(&o.WriteTimeout, 30*time.Second)
	duration(&o.IdleTimeout, 2*time.Minute)
	duration(&o.Heartbeat, 10*time.Second)
	duration(&o.Grace, 30*time.Second)
	if o.MaxBody <= 0 {
		o.MaxBody = 8 << 20
	}
	if o.BodyBudget <= 0 {
		o.BodyBudget = 256 << 20
	}
	if o.MaxHeader <= 0 {
		o.MaxHeader = 64 << 10
	}
	if o.MaxConns <= 0 {
		o.MaxConns = 4096
	}
	if o.ClientConns <= 0 {
		o.ClientConns = max(1, o.MaxConns/4)
	}
	return o
}

// Server answers the API of the package comment. It is an http.Handler; Serve
// runs it on a listener with the limits of its Options.
type Server struct {
	gen       Generator // set before readiness lets the first request in
	opts      Options
	keys      atomic.Pointer[keyring] // nil: no key is asked for
	routes    map[string]route
	bodies    budget
	counters  counters
	readiness readiness
	answers   *store
	unknown   nameSet // fields of requests that were ignored
}

// route is the handler of a path.
type route struct {
	method string // GET (and HEAD) or POST
	open   bool   // needs no key
	form   bool   // takes JSON that is declared as a form, as curl -d sends it
	serve  func(w http.ResponseWriter, r *http.Request)
	shape  errorShape
}

// New returns a server over g. Without a g it says that it is loading, until Ready.
func New(g Generator, o Options) *Server {
	s := &Server{opts: o.withDefaults(), answers: newStore(storedBytes)}
	s.bodies.left.Store(s.opts.BodyBudget)
	s.SetKeys(o.APIKeys)
	s.Progress("starting", 0)
	if g != nil {
		s.Ready(g)
	}
	s.routes = map[string]route{
		"/":                         {method: http.MethodGet, open: true, serve: s.root},
		"/health":                   {method: http.MethodGet, open: true, serve: s.health},
		"/metrics":                  {method: http.MethodGet, serve: s.metrics},
		"/v1/models":                {method: http.MethodGet, serve: s.models},
		"/v1/chat/completions":      {method: http.MethodPost, serve: s.generate(true)},
		"/v1/completions":           {method: http.MethodPost, serve: s.generate(false)},
		"/tokenize":                 {method: http.MethodPost, form: true, serve: s.tokenize},
		"/detokenize":               {method: http.MethodPost, serve: s.detokenize},
		"/apply-template":           {method: http.MethodPost, serve: s.applyTemplate},
		"/props":                    {method: http.MethodGet, serve: s.props},
		"/v1/embeddings":            {method: http.MethodPost, serve: s.embeddings},
		"/v1/rerank":                {method: http.MethodPost, serve: s.rerank},
		"/v2/rerank":                {method: http.MethodPost, serve: s.rerank},
		"/v1/responses":             {method: http.MethodPost, serve: s.responses},
		"/api/version":              {method: http.MethodGet, serve: s.ollamaVersion, shape: ollamaError},
		"/api/tags":                 {method: http.MethodGet, serve: s.tags, shape: ollamaError},
		"/api/ps":                   {method: http.MethodGet, serve: s.ps, shape: ollamaError},
		"/api/show":                 {method: http.MethodPost, form: true, serve: s.show, shape: ollamaError},
		"/api/chat":                 {method: http.MethodPost, form: true, serve: s.ollama(true), shape: ollamaError},
		"/api/generate":             {method: http.MethodPost, form: true, serve: s.ollama(false), shape: ollamaError},
		"/api/embed":                {method: http.MethodPost, form: true, serve: s.embed, shape: ollamaError},
		"/api/embeddings":           {method: http.MethodPost, form: true, serve: s.embed, shape: ollamaError},
		"/v1/messages":              {method: http.MethodPost, serve: s.messages, shape: anthropicError},
		"/v1/messages/count_tokens": {method: http.MethodPost, serve: s.countTokens, shape: anthropicError},
	}
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if _, full := s.routes["/v1"+path]; full {
		path = "/v1" + path // as clients write it whose base address has no /v1
	} else if bare := strings.TrimPrefix(path, "/v1"); s.routes[bare].serve != nil {
		path = bare // and as those whose base address has it
	}
	rt, known := s.routes[path]
	if !known {
		rt, path, known = s.below(path, r.Method)
	}
	x := newExchange(w, r, path)
	x.shape = rt.shape
	if r.ContentLength != 0 {
		c := conntable.Of(r.Context())
		c.Receive(s.opts.BodyTimeout)
		defer func() { endBody(c, w, r, x.failed != nil && x.failed.status == http.StatusRequestTimeout) }()
	}
	defer func() {
		s.counters.request(path, x.status)
		x.log(s.opts.Log)
	}()

	if !s.hostAllowed(r) {
		newError(http.StatusMisdirectedRequest, typeInvalid, "host_not_allowed",
			"this server is not known as %q; start it with --allow-host and that name to let it be",
			clip(hostName(r.Host))).write(x)
		return
	}
	if s.share(x, r, rt) {
		return
	}
	if e := s.refusal(x, r, rt, known); e != nil {
		e.write(x)
		return
	}
	if rt.open {
		rt.serve(x, r)
		return
	}
	s.admitted(x, r, rt.serve)
}

// root is the handler of /, which clients of ollama ask to see whether a server runs.
func (s *Server) root(w http.ResponseWriter, _ *http.Request) {
	const text = "sandwich is running\n"
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	io.WriteString(w, text)
}

// below is the route of a path that ends in an id, and its name in the metrics, which a scan of
// paths must not grow.
func (s *Server) below(path, method string) (rt route, name string, known bool) {
	switch {
	case strings.HasPrefix(path, "/v1/models/"):
		return route{method: http.MethodGet, serve: s.model}, "/v1/models/{id}", true
	case isOllama(path):
		return route{shape: ollamaError}, "other", false
	case !strings.HasPrefix(path, responsesPrefix):
		return rt, "other", false
	case method == http.MethodDelete:
		return route{method: method, serve: s.forgotten}, responsesPrefix + "{id}", true
	}
	return route{method: http.MethodGet, serve: s.stored}, responsesPrefix + "{id}", true
}

// paths are what there is, for who asks for something else.
func (s *Server) paths() string {
	return strings.Join(slices.Sorted(maps.Keys(s.routes)), ", ")
}

func appendModel(b []byte, m *ModelInfo) []byte {
	b = appendString(append(b, `{"id":`...), m.ID)
	b = strconv.AppendInt(append(b, `,"object":"model","created":`...), m.Created.Unix(), 10)
	b = appendInt(append(b, `,"owned_by":"sandwich","max_model_len":`...), m.Context)
	return append(b, '}')
}

func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	b := []byte(`{"object":"list","data":[`)
	for i, m := range s.gen.Models() {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendModel(b, &m)
	}
	writeJSON(w, http.StatusOK, append(b, "]}"...))
}

func (s *Server) model(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Path, "/v1/models/")
	for _, m := range s.gen.Models() {
		if m.ID == id {
			writeJSON(w, http.StatusOK, appendModel(nil, &m))
			return
		}
	}
	newError(http.StatusNotFound, typeInvalid, "model_not_found", "there is no model %q here", clip(id)).write(w)
}
