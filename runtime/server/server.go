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

	"sandwich/runtime/server/anthropic"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/conntable"
	"sandwich/runtime/server/embedding"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/jsontext"
	"sandwich/runtime/server/metrics"
	"sandwich/runtime/server/ollama"
	"sandwich/runtime/server/openai"
	"sandwich/runtime/server/page"
	"sandwich/runtime/server/responses"
	"sandwich/runtime/server/status"
	"sandwich/runtime/server/tracing"
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

	// DrainDelay is the time at shutdown for which requests are still accepted while /health
	// reports the shutdown, so that a load balancer can direct new requests elsewhere; 0. Hurry
	// ends it early when it is closed; it may be nil.
	DrainDelay time.Duration
	Hurry      <-chan struct{}

	// OpenMetrics answers /metrics without a key.
	OpenMetrics bool

	// NoPage answers / with text only, as if no browser asked for the page.
	NoPage bool

	// StablePrefix moves lines of system prompts with the date or the time to the end of the last
	// user message, so that prompts begin alike, and says so in a warning.
	StablePrefix bool

	Log        *slog.Logger            // receives a line for each request, more at level Debug; nil: no log
	Metrics    func() []metrics.Metric // further metrics of /metrics; nil: none
	LogDropped func() int64            // number of lines that Log or ErrorLog dropped, for /metrics; nil: unknown
	Tracer     *tracing.Tracer         // records the requests of routes that need the model; nil: none
	ErrorLog   *log.Logger             // of net/http; nil: the standard logger
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
	run       *generation.Runner
	opts      Options
	keys      atomic.Pointer[keyring] // nil: no key is required
	routes    map[string]route        // by path
	idRoutes  map[string]route        // by the part of the path before an id
	readiness readiness
	openAI    *openai.API
	responses *responses.API
}

// route is the handler of a path.
type route struct {
	method string // GET (and HEAD) or POST
	open   bool   // requires no key and no model
	public bool   // requires no key
	form   bool   // accepts JSON that is declared as a form, as by curl -d
	serve  http.HandlerFunc
	remove http.HandlerFunc // handles DELETE; nil: not accepted
	format apierr.Format
}

// handler returns the handler for a method, or nil if the route does not accept the method.
func (rt route) handler(method string) http.HandlerFunc {
	switch {
	case method == rt.method, method == http.MethodHead && rt.method == http.MethodGet:
		return rt.serve
	case method == http.MethodDelete:
		return rt.remove
	}
	return nil
}

// methods lists the methods of the route for a header.
func (rt route) methods() string {
	if rt.remove != nil {
		return rt.method + ", " + http.MethodDelete
	}
	return rt.method
}

// New returns a server over g. If g is nil, the server reports that it is loading until Ready is
// called.
func New(g generation.Generator, o Options) *Server {
	o = o.withDefaults()
	limits := generation.Limits{MaxBody: o.MaxBody, BodyBudget: o.BodyBudget, BodyTimeout: o.BodyTimeout,
		Heartbeat: o.Heartbeat, Stable: o.StablePrefix}
	s := &Server{opts: o, run: generation.NewRunner(limits, o.Log)}
	s.responses = responses.New(s.run)
	s.SetKeys(o.APIKeys)
	s.Progress("starting", 0)
	if g != nil {
		s.Ready(g)
	}
	s.openAI = &openai.API{Runner: s.run}
	embeddings := &embedding.API{Runner: s.run}
	messages := &anthropic.API{Runner: s.run}
	ollamaAPI := &ollama.API{Runner: s.run}
	state := &status.API{Runner: s.run}
	s.routes = map[string]route{
		"/":                    {method: http.MethodGet, open: true, serve: s.root},
		"/health":              {method: http.MethodGet, open: true, serve: s.health},
		"/metrics":             {method: http.MethodGet, public: o.OpenMetrics, serve: s.metrics},
		"/v1/models":           {method: http.MethodGet, serve: s.openAI.Models},
		"/v1/chat/completions": {method: http.MethodPost, serve: s.openAI.Generate(true)},
		"/v1/completions":      {method: http.MethodPost, serve: s.openAI.Generate(false)},
		"/tokenize":            {method: http.MethodPost, form: true, serve: s.openAI.Tokenize},
		"/detokenize":          {method: http.MethodPost, serve: s.openAI.Detokenize},
		"/apply-template":      {method: http.MethodPost, serve: s.openAI.ApplyTemplate},
		"/props":               {method: http.MethodGet, serve: s.openAI.Props},
		"/v1/embeddings":       {method: http.MethodPost, serve: embeddings.Embeddings},
		"/v1/rerank":           {method: http.MethodPost, serve: embeddings.Rerank},
		"/v2/rerank":           {method: http.MethodPost, serve: embeddings.Rerank},
		"/v1/responses":        {method: http.MethodPost, serve: s.responses.Create},
		"/api/version":         {method: http.MethodGet, serve: ollamaAPI.Version, format: ollama.EncodeError},
		"/api/tags":            {method: http.MethodGet, serve: ollamaAPI.Tags, format: ollama.EncodeError},
		"/api/ps":              {method: http.MethodGet, serve: ollamaAPI.Running, format: ollama.EncodeError},
		"/api/show": {method: http.MethodPost, form: true, serve: ollamaAPI.Show,
			format: ollama.EncodeError},
		"/api/chat": {method: http.MethodPost, form: true, serve: ollamaAPI.Answer(true),
			format: ollama.EncodeError},
		"/api/generate": {method: http.MethodPost, form: true, serve: ollamaAPI.Answer(false),
			format: ollama.EncodeError},
		"/api/embed": {method: http.MethodPost, form: true, serve: ollamaAPI.Embed,
			format: ollama.EncodeError},
		"/api/embeddings": {method: http.MethodPost, form: true, serve: ollamaAPI.Embed,
			format: ollama.EncodeError},
		"/v1/messages":        {method: http.MethodPost, serve: messages.Messages, format: anthropic.EncodeError},
		"/v1/sandwich/status": {method: http.MethodGet, public: o.OpenMetrics, serve: state.Status},
		"/v1/sandwich/plan":   {method: http.MethodGet, public: o.OpenMetrics, serve: state.Plan},
		"/v1/messages/count_tokens": {method: http.MethodPost, serve: messages.CountTokens,
			format: anthropic.EncodeError},
	}
	s.idRoutes = map[string]route{
		"/v1/models/":    {method: http.MethodGet, serve: s.openAI.Model},
		"/v1/responses/": {method: http.MethodGet, serve: s.responses.Get, remove: s.responses.Delete},
	}
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rt, name, known := s.routeOf(r)
	x := exchange.NewExchange(w, r, name)
	if x.Format = rt.format; known && !rt.open && name != "/metrics" {
		x.StartTrace(s.opts.Tracer, r)
	}
	if r.ContentLength != 0 {
		c := conntable.Of(r.Context())
		c.Receive(s.opts.BodyTimeout)
		defer func() { generation.EndBody(c, w, r, x.Err != nil && x.Err.Status == http.StatusRequestTimeout) }()
	}
	defer func() {
		s.run.Counters.Request(name, x.Status)
		x.Log(s.opts.Log)
		x.EndTrace()
	}()

	if !s.hostAllowed(r) {
		apierr.New(http.StatusMisdirectedRequest, apierr.TypeInvalid, "host_not_allowed",
			"the host name %q is not allowed; allow it with --allow-host",
			jsontext.Clip(hostName(r.Host))).Write(x)
		return
	}
	if s.writeCORS(x, r, rt) {
		return
	}
	if e := s.check(x, r, rt, known); e != nil {
		e.Write(x)
		return
	}
	if s.readiness.isLeaving() {
		x.Header().Set("Connection", "close") // the client should reconnect to a server that stays
	}
	serve := rt.handler(r.Method)
	if rt.open {
		serve(x, r)
		return
	}
	s.serveReady(x, r, serve)
}

// routeOf returns the route of a request and its name for log and metrics, which does not depend on
// an id in the path. It accepts paths with and without /v1, because clients differ in whether their
// base URL has it. It sets the path value "id" of r to the id.
func (s *Server) routeOf(r *http.Request) (rt route, name string, known bool) {
	path := r.URL.Path
	bare := strings.TrimPrefix(path, "/v1")
	for _, name := range []string{"/v1" + path, bare, path} {
		if rt, known := s.routes[name]; known {
			return rt, name, true
		}
	}
	for dir, rt := range s.idRoutes {
		if id, ok := strings.CutPrefix("/v1"+bare, dir); ok {
			r.SetPathValue("id", id)
			return rt, dir + "{id}", true
		}
	}
	switch {
	case strings.HasPrefix(path, page.Prefix) && !s.opts.NoPage:
		return route{method: http.MethodGet, open: true, serve: page.File}, page.Prefix + "{file}", true
	case ollama.Owns(path):
		return route{format: ollama.EncodeError}, "other", false
	}
	return route{}, "other", false
}

// root handles /. Browsers get the page; other clients get text, such as ollama's, which check that
// a server runs.
func (s *Server) root(w http.ResponseWriter, r *http.Request) {
	const text = "sandwich is running\n"
	h := w.Header()
	if !s.opts.NoPage {
		h.Add("Vary", "Accept")
		if r.URL.Path == "/" && page.Wanted(r) {
			page.Index(w, r)
			return
		}
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	io.WriteString(w, text)
}

// paths lists the known paths for an error message.
func (s *Server) paths() string {
	return strings.Join(slices.Sorted(maps.Keys(s.routes)), ", ")
}

// measured returns whether /metrics shows the series of a model to the client of w: those of the
// models that its key may use. It returns nil, which shows all, if there is one model or no key is
// required.
func (s *Server) measured(w http.ResponseWriter) func(model string) bool {
	x, keyed := w.(*exchange.Exchange) // ServeHealth has none
	if !keyed || s.opts.OpenMetrics || generation.Only(s.run.Router) != nil {
		return nil
	}
	shown := map[string]bool{}
	for _, m := range s.run.Router.Models(generation.Key(x.Salt)) {
		shown[m.ID] = true
	}
	return func(model string) bool { return shown[model] }
}

// metrics handles /metrics. A key sees the series of the models that it may use.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	var own []metrics.Metric
	if s.opts.Metrics != nil {
		own = s.opts.Metrics()
	}
	if s.opts.LogDropped != nil {
		own = append(own, metrics.Metric{Name: "sandwich_log_dropped_lines_total", Counter: true,
			Value: float64(s.opts.LogDropped()),
			Help:  "Log lines dropped because stderr was not read."})
	}
	text := s.run.Counters.Text(s.run.BodyMemory(), append(own, s.run.Router.Metrics()...), s.measured(w))
	h := w.Header()
	h.Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.Write(text)
}
