// Package serve has the verbs serve, run, generate and embed, which run a model.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/build"
	"sandwich/cmd/sandwich/internal/cli/config"
	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/cli/root"
	"sandwich/cmd/sandwich/internal/footprint"
	"sandwich/cmd/sandwich/internal/listen"
	"sandwich/cmd/sandwich/internal/planpage"
	"sandwich/cmd/sandwich/internal/planreport"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/energy"
	"sandwich/runtime/energy/live"
	"sandwich/runtime/engine"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
	"sandwich/runtime/session"
)

type serveFlags struct {
	session     modelflags.Flags
	sizes       modelflags.Service
	listen      listen.Flags
	keys        string
	clientConns int
	strict      strictness
	dryRun      bool
	key         planreport.RequiredKey
	grace       time.Duration
	drainDelay  time.Duration
	openMetrics bool
	otlp        string // address of the collector of traces; "": that of the environment
	access      accessFlags
	prefixes    modelflags.PrefixStore
	models      string // catalog; "": one model
	reread      func() (reloaded, error)
}

// NewServe returns the verb serve.
func NewServe() *cobra.Command {
	f := serveFlags{session: modelflags.Flags{Wants: modelflags.ForBoth}}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve a model over an OpenAI-compatible HTTP API",
		Long: `Serve a model over HTTP: /v1/chat/completions, /v1/completions, /v1/responses, /v1/messages, /v1/models, ollama's
/api/chat and /api/generate, /health and /metrics; an embedding model over /v1/embeddings, a rerank model over /v1/rerank
(docs/clients.md lists all endpoints). Concurrent requests share decode batches. A request beyond --parallel waits; one
beyond --queue gets status 429 with Retry-After. SIGTERM and Ctrl-C let running requests finish. SIGHUP reads
--api-key-file again, and its path and --verbose from --config, and --models.

With --models a request chooses its model by the field model; without one it gets the first model of the file. Models are
loaded when they are needed, and the least recently used ones are unloaded to stay within the memory budget.

/health returns 503 with the stage and its progress while the model loads, 200 while requests are accepted, and 503 while
the last requests finish. --health-listen serves it on a separate address that is independent of the number of clients,
and /metrics with it. --listen also takes unix:PATH and fd:NAME, a socket of systemd, and may be repeated; --tls-cert and
--tls-key serve its TCP addresses over TLS. Under systemd (Type=notify) the server reports its state, and it notifies the
watchdog only while the engine works (docs/operations.md). With --drain-delay the server accepts requests for that time
after SIGTERM, although /health already returns 503, so that a load balancer can direct new ones to another server.

Each request is logged on stderr when it ends, with its id (also sent as X-Request-Id; an id of the client is kept),
route, status, tokens and times, and without prompts, answers or keys. Two statuses appear only in the log: 499 if the
client disconnected, 444 if a connection without progress was closed for a new one. -v also logs requests of /health and
/metrics. Log lines that are not read from stderr in time are dropped and counted (sandwich_log_dropped_lines_total in
/metrics).

A browser that opens the address gets a page: a chat, the PUs that are active in each phase, tokens per second against
the ceiling, and how the plan was found (docs/operations.md); --no-page turns it off.

With --plans the server takes the plan for its host, its CPUs and its model from a list of plans of many hosts. A plan that
was made on other CPUs of equal shape is used with its CPUs renumbered. If none fits, a message names what the nearest one
differs in, and the default plan serves; --strict refuses that. If the registry does not answer, the last plan from
--plans-cache serves.

If the host has a device that computes exactly, such as a GPU, and the plan places no phase, the device runs the phases
that it is predicted to run faster (--device, docs/devices.md). -v prints the devices that are not used, and why.

Requests from pages of other sites are refused: bodies must be application/json, on a loopback address the Host must be
localhost or the address (--allow-host adds names), and foreign origins are refused (--cors admits them). Requests with
different API keys share no prefix cache.`,
		Example: `  sandwich serve
  sandwich serve --model llama.gguf --listen 0.0.0.0:8080 --api-key-file keys.txt
  sandwich serve --listen 0.0.0.0:8080 --api-key-file keys.txt --health-listen 0.0.0.0:8081
  sandwich serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem --api-key-file keys.txt
  sandwich serve --listen unix:/run/sandwich/api.sock,mode=0660 --listen 127.0.0.1:8080
  sandwich serve --cors http://localhost:3000 --log json 2>requests.log
  sandwich serve --model llama.gguf --plan llama.plan --parallel 16 --ctx 8192 --strict
  sandwich serve --model llama.gguf --plans registry.example/plans --strict --require-key release.pub
  sandwich serve --model llama.gguf --plan llama.plan --dry-run
  sandwich serve --model llama.gguf --device none
  sandwich serve --models models.yaml`,
		Args:        flags.ExactArgs(0, ""),
		Annotations: map[string]string{root.ReloadsOnHangUp: "yes"},
	}
	f.session.Add(c)
	f.session.AddDevice(c)
	f.session.AddDeviceDispatch(c)
	f.session.Plans.Add(c)
	f.add(c)
	c.Flags().Var(&f.strict, "strict", "serve only under a tuned plan that plan verify calls OPTIMAL or "+
		"SUBOPTIMAL; --strict=optimal requires OPTIMAL")
	c.Flags().Lookup("strict").NoOptDefVal = string(strictGood)
	f.key.Flag = "--require-key"
	c.Flags().StringVar(&f.key.Path, "require-key", "", "PEM file with the public key that must have signed the plan")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false,
		"print the verdict on the plan and the memory by node, without loading the model")
	c.Flags().StringVar(&f.models, "models", "", "YAML file with several models to serve, or folder of GGUF files "+
		"(docs/models.md)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := f.checkModels(); err != nil {
			return exit.Usage(err)
		}
		if f.dryRun {
			return f.printDryRun(c.Context(), c.OutOrStdout())
		}
		return f.run(c.Context(), c.OutOrStdout(), f.open)
	}
	return c
}

// add adds the flags that serve and run share.
func (f *serveFlags) add(c *cobra.Command) {
	fs := c.Flags()
	f.listen.Add(fs)
	fs.StringVar(&f.keys, "api-key-file", "", "file with one API key per line, followed by class=proactive or "+
		"class=NUMBER if its requests can wait; all endpoints but /health then require a key")
	fs.IntVar(&f.clientConns, "client-connections", 0,
		"maximum number of connections per client address; connections without progress are closed for new ones "+
			"(default: 1024, or twice --parallel plus --queue)")
	fs.IntVar(&f.sizes.Parallel, "parallel", footprint.DefaultParallel, "maximum number of concurrent requests")
	fs.IntVar(&f.sizes.Context, "ctx", 0, "maximum number of tokens per request, prompt and answer (default: 4096, or "+
		"the training context of the model if smaller)")
	fs.IntVar(&f.sizes.Queue, "queue", footprint.DefaultQueue, "maximum number of waiting requests")
	flags.Bytes(fs, &f.sizes.StateBytes, "state-bytes", "memory for checkpoints of recurrent states, from which "+
		"requests with equal beginnings resume, such as 2GiB; 0 disables them (default: a few checkpoints)")
	f.sizes.AddService(fs)
	modelflags.AddSpeculate(fs, &f.sizes.Speculation)
	flags.Duration(fs, &f.grace, "grace", 30*time.Second, "time limit for running requests after SIGTERM")
	flags.Duration(fs, &f.drainDelay, "drain-delay", 0, "time after SIGTERM in which requests are still accepted "+
		"while /health reports the shutdown, for load balancers, such as 5s; a second signal ends it")
	fs.BoolVar(&f.openMetrics, "open-metrics", false, "answer /metrics without an API key")
	fs.StringVar(&f.otlp, "otlp-endpoint", "", "address of an OpenTelemetry collector for traces over OTLP/HTTP, such "+
		"as http://127.0.0.1:4318 (default: OTEL_EXPORTER_OTLP_ENDPOINT; without it no traces)")
	f.prefixes.Add(fs)
	f.access.add(c)
	f.reread = func() (r reloaded, err error) {
		if r.file, err = config.Path(c); err != nil {
			return r, err
		}
		if r.keyFile, err = config.Reread(c, "api-key-file"); err != nil {
			return r, err
		}
		verbose, err := config.Reread(c, "verbose")
		if err != nil {
			return r, err
		}
		if r.verbose, err = strconv.ParseBool(verbose); err != nil {
			return r, fmt.Errorf("%s: verbose is %s; write true or false", r.file, show.Clip(verbose, 40))
		}
		return r, nil
	}
}

// maxDrainDelay is the limit of --drain-delay.
const maxDrainDelay = time.Hour

func (f *serveFlags) check() error {
	s := &f.sizes
	switch {
	case s.Parallel < 1 || s.Parallel > modelflags.MaxParallel:
		return fmt.Errorf("--parallel %d is out of range; give a number from 1 to %d", s.Parallel,
			modelflags.MaxParallel)
	case s.Context < 0 || s.Context > modelflags.MaxContext:
		return fmt.Errorf("--ctx %d is out of range; give a number of tokens up to %d", s.Context,
			modelflags.MaxContext)
	case s.Queue < 0 || s.Queue > 1<<20:
		return fmt.Errorf("--queue %d is out of range; give a number from 0 to %d", s.Queue, 1<<20)
	case f.clientConns < 0 || f.clientConns > 1<<20:
		return fmt.Errorf("--client-connections %d is out of range; give a number from 1 to %d", f.clientConns, 1<<20)
	case f.drainDelay < 0 || f.drainDelay > maxDrainDelay:
		return fmt.Errorf("--drain-delay %s is out of range; give a time from 0 to %s", f.drainDelay, maxDrainDelay)
	case f.grace <= 0:
		return errors.New("--grace is not above 0; give a duration such as 30s")
	}
	if err := s.CheckService(); err != nil {
		return err
	}
	if err := f.listen.Check(); err != nil {
		return err
	}
	if err := f.prefixes.Check(); err != nil {
		return err
	}
	return f.access.check()
}

// run serves the session that open returns, until ctx ends and the requests in flight are done. The
// listeners are open before the model is loaded and report the progress of loading.
func (f *serveFlags) run(ctx context.Context, out io.Writer, open func(context.Context) (*session.Session,
	error)) error {
	if err := f.check(); err != nil {
		return exit.Usage(err)
	}
	show.Detach() // output must never block or stop a server
	d, err := f.openListeners()
	if err != nil {
		return err
	}
	defer d.close()
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	if f.strict != strictNo {
		f.sizes.Displaced = func(err error) { leave(exit.With(exit.Foreign, fmt.Errorf("--strict: %w", err))) }
	}
	f.session.Loading = d.loading
	defer context.AfterFunc(ctx, func() { d.notify.Stopping(f.drainDelay + f.grace + stopTime) })()
	ended := d.open(ctx)
	stop, err := f.start(ctx, d, out, open)
	if err == nil {
		defer stop()
	} else {
		leave(err)
	}
	failed := <-ended
	switch {
	case errors.Is(err, errUnloaded):
		show.Notice(err.Error())
		return nil
	case err != nil:
		return err
	case failed != nil:
		return failed
	}
	show.Notice("stopped")
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// stopTime is the time to stop after the running requests have ended.
const stopTime = 10 * time.Second

// start loads the models and makes the server ready. stop unloads them.
func (f *serveFlags) start(ctx context.Context, d *listeners, out io.Writer, open func(context.Context) (
	*session.Session, error)) (stop func(), err error) {
	if f.models != "" {
		return f.startSeveral(ctx, d, out)
	}
	l, err := f.load(ctx, open)
	if err != nil {
		return nil, err
	}
	g := l.session.Generator(l.engine, f.sizes.Parallel)
	g.Meter(l.meter)
	g.Describe(infoLabels(l.session)...)
	if !f.access.noPage {
		g.DescribePlan(planpage.Of(l.session, f.sizes.Parallel))
	}
	d.server.Ready(g)
	m := g.Model()
	announce(out, d.sockets.URLs, m.ID, &m, len(d.keys) > 0)
	d.ready(m.ID, l.engine.Progress)
	return l.close, nil
}

// infoLabels returns the labels of the metric sandwich_info that do not describe the model.
func infoLabels(s *session.Session) [][2]string {
	tuned := "no"
	if s.Plan.Tuned {
		tuned = "yes"
	}
	digest := s.Plan.Digest()
	if s.Bundle != nil {
		digest = s.Bundle.Digest()
	}
	tree := s.Profile.Machine.AsReported().Tree
	return [][2]string{{"version", build.Version()}, {"commit", build.Commit()}, {"plan", digest},
		{"tuned", tuned}, {"host", s.Profile.Fingerprint()}, {"topology", tree.Digest().String()}}
}

// load opens the session and starts the engine over it. The end of ctx stops the packing of
// weights, which may take minutes.
func (f *serveFlags) load(ctx context.Context, open func(context.Context) (*session.Session, error)) (*loaded, error) {
	s, err := open(ctx)
	if err != nil {
		return nil, err
	}
	e, err := f.engine(ctx, s)
	if err != nil {
		s.Close()
		if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
			err = errUnloaded
		}
		return nil, err
	}
	f.report(s, e)
	return &loaded{s, e, live.Open(s.Accelerator.Name, s.Accelerator.Device)}, nil
}

// engine starts the engine that answers the requests.
func (f *serveFlags) engine(ctx context.Context, s *session.Session) (*engine.Engine, error) {
	if err := s.CheckTokenizer(); err != nil {
		return nil, exit.Usage(err)
	}
	if f.sizes.Context == 0 {
		f.sizes.Context = s.ContextLimit(footprint.DefaultContext)
		if s.Pooling != model.NoPooling {
			f.sizes.Context = s.ContextLimit(maxEmbedContext)
		}
	} else if s.Shape.Context > 0 && f.sizes.Context > s.Shape.Context {
		show.Notice(fmt.Sprintf("note: --ctx %d exceeds the training context of this model, %d tokens",
			f.sizes.Context, s.Shape.Context))
	}
	f.sizes.Note = func(text string) { show.Notice("note: " + text) }
	f.sizes.Prefixes = f.prefixes.OpenOrWarn(s.Plan.Rounding())
	return s.Engine(ctx, f.sizes.Sizes)
}

// report prints to stderr the model that was loaded, and on a machine of several nodes its
// placement.
func (f *serveFlags) report(s *session.Session, e *engine.Engine) {
	m := e.Stats().Memory
	line := fmt.Sprintf("%s: weights %s, KV cache %s for %d requests of up to %d tokens", s.Name,
		mem.FormatBytes(m.Weights), mem.FormatBytes(m.KV),
		f.sizes.Parallel, f.sizes.Context)
	show.Notice(show.Join(", ", line, hugeText(e.Runner(), m)))
	switch {
	case m.State == 0 && f.sizes.StateBytes != 0:
		show.Notice("note: --state-bytes has no effect: this model has no recurrent states")
	case m.State > 0 && m.Copies > 0:
		show.Notice(fmt.Sprintf("recurrent states take %s per sequence; there is memory for %d checkpoints",
			mem.FormatBytes(m.State), m.Copies))
	case m.State > 0:
		show.Notice(fmt.Sprintf("recurrent states take %s per sequence, and there is no memory for checkpoints: every "+
			"request is computed from its beginning; raise --state-bytes", mem.FormatBytes(m.State)))
	}
	if s.Profile.Machine.Summary().NUMALocalities < 2 {
		return
	}
	if places, err := e.Placement(); err == nil {
		printPlacement(show.Stderr(), places)
	}
}

// loaded holds a session, its engine, and the meter of the machine's energy.
type loaded struct {
	session *session.Session
	engine  *engine.Engine
	meter   *energy.Meter
}

func (l *loaded) close() {
	_ = l.meter.Close() // its process ends with this one
	l.engine.Close()
	l.session.Close()
}

// errUnloaded reports that the program was stopped while it loaded its model.
var errUnloaded = errors.New("stopped before the model was loaded")
