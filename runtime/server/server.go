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

	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/conntable"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/jsontext"
	"sandwich/runtime/server/metrics"
)

// Options configures a server. Zero fields take the defaults given after each field.
type Options struct {
	APIKeys []string // lines in the format of CheckKey; required except for /health; none: no key is required
	Hosts   []string // allowed names in the Host header; none, or "*": any
	Origins []string // origins whose pages may read answers (CORS); "*": any; none: only the server's own

	MaxBody    int64 // maximum bytes of one body; 8 MiB
	BodyBudget int64 // maximum bytes of all bodies in memory; 256 MiB
	MaxHeader  int   // maximum bytes of a header; 64 KiB

	// MaxConns bounds the open connections; 4096. Above it, the server closes an idle connection or
	// one without progress to accept a new one, or refuses the new one if all are busy.
	MaxConns int

	// ClientConns bounds the connections of one address, or of one IPv6 /64 network, in the same
	// way; a quarter of MaxConns. A proxy needs one connection for each running request.
	ClientConns int

	HeaderTimeout time.Duration // to receive a header; 10 s
	BodyTimeout   time.Duration // to receive a body, plus one second for each conntable.MinBodyRate bytes; 60 s
	WriteTimeout  time.Duration // for one write to a client; 30 s
	IdleTimeout   time.Duration // between two requests of a connection; 2 min
	Heartbeat     time.Duration // interval of keep-alive comments in a quiet stream; 10 s
	Grace         time.Duration // for running answers at shutdown; 30 s

	Log        *slog.Logger // receives a line for each request, more at level Debug; nil: no log
	LogDropped func() int64 // number of lines that Log or ErrorLog dropped, for /metrics; nil: unknown
	ErrorLog   *log.Logger  // of net/http; nil: the standard logger
}

// withDefaults returns the options with defaults for zero fields.
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

// Server implements the API of the package comment. It is an http.Handler; Serve runs it on a
// listener with the limits of its Options.
type Server struct {
	*generation.Runner
	opts      Options
	keys      atomic.Pointer[keyring] // nil: no key is required
	routes    map[string]route
	readiness readiness
	answers   *store
}

// route is the handler of a path.
type route struct {
	method string // GET (and HEAD) or POST
	open   bool   // requires no key
	form   bool   // accepts JSON that is declared as a form, as by curl -d
	serve  func(w http.ResponseWriter, r *http.Request)
	shape  apierr.Format
}

// New returns a server over g. If g is nil, the server reports that it is loading until Ready is
// called.
func New(g generation.Generator, o Options) *Server {
	o = o.withDefaults()
	limits := generation.Limits{MaxBody: o.MaxBody, BodyBudget: o.BodyBudget, BodyTimeout: o.BodyTimeout,
		Heartbeat: o.Heartbeat}
	s := &Server{opts: o, answers: newStore(storedBytes), Runner: generation.NewRunner(limits, o.Log)}
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
		path = "/v1" + path // for clients whose base URL lacks /v1
	} else if bare := strings.TrimPrefix(path, "/v1"); s.routes[bare].serve != nil {
		path = bare // for clients whose base URL has /v1
	}
	rt, known := s.routes[path]
	if !known {
		rt, path, known = s.below(path, r.Method)
	}
	x := exchange.NewExchange(w, r, path)
	x.Format = rt.shape
	if r.ContentLength != 0 {
		c := conntable.Of(r.Context())
		c.Receive(s.opts.BodyTimeout)
		defer func() { generation.EndBody(c, w, r, x.Err != nil && x.Err.Status == http.StatusRequestTimeout) }()
	}
	defer func() {
		s.Counters.Request(path, x.Status)
		x.Log(s.opts.Log)
	}()

	if !s.hostAllowed(r) {
		apierr.New(http.StatusMisdirectedRequest, apierr.TypeInvalid, "host_not_allowed",
			"the host name %q is not allowed; allow it with --allow-host",
			jsontext.Clip(hostName(r.Host))).Write(x)
		return
	}
	if s.share(x, r, rt) {
		return
	}
	if e := s.refusal(x, r, rt, known); e != nil {
		e.Write(x)
		return
	}
	if rt.open {
		rt.serve(x, r)
		return
	}
	s.admitted(x, r, rt.serve)
}

// root handles /, which ollama's clients request to check that a server runs.
func (s *Server) root(w http.ResponseWriter, _ *http.Request) {
	const text = "sandwich is running\n"
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	io.WriteString(w, text)
}

// below returns the route of a path that ends in an id, and a name for the metrics that does not
// depend on the id.
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

// paths lists the known paths for an error message.
func (s *Server) paths() string {
	return strings.Join(slices.Sorted(maps.Keys(s.routes)), ", ")
}

// appendModel appends a model of /v1/models.
func appendModel(b []byte, m *generation.ModelInfo) []byte {
	b = jsontext.AppendString(append(b, `{"id":`...), m.ID)
	b = strconv.AppendInt(append(b, `,"object":"model","created":`...), m.Created.Unix(), 10)
	b = jsontext.AppendInt(append(b, `,"owned_by":"sandwich","max_model_len":`...), m.Context)
	return append(b, '}')
}

// models handles /v1/models.
func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	b := []byte(`{"object":"list","data":[`)
	for i, m := range s.Gen.Models() {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendModel(b, &m)
	}
	jsontext.Write(w, http.StatusOK, append(b, "]}"...))
}

// model handles /v1/models/{id}.
func (s *Server) model(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Path, "/v1/models/")
	for _, m := range s.Gen.Models() {
		if m.ID == id {
			jsontext.Write(w, http.StatusOK, appendModel(nil, &m))
			return
		}
	}
	apierr.New(http.StatusNotFound, apierr.TypeInvalid, "model_not_found", "unknown model %q; see /v1/models",
		jsontext.Clip(id)).Write(w)
}

// metrics handles /metrics.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	var own []metrics.Metric
	if s.opts.LogDropped != nil {
		own = append(own, metrics.Metric{Name: "sandwich_log_dropped_total", Counter: true,
			Value: float64(s.opts.LogDropped()),
			Help:  "Log lines dropped because stderr was not read."})
	}
	text := s.Counters.Text(s.BodyMemory(), append(own, s.Gen.Metrics()...))
	h := w.Header()
	h.Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.Write(text)
}
