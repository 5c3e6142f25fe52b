package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/runtime/engine"
	"sandwich/runtime/mem"
	"sandwich/runtime/server"
)

// maxParallel bounds the rows of a decode batch: each has a row of logits of its own.
const maxParallel = 512

type serveFlags struct {
	session sessionFlags
	sizes   serving
	listen  string
	keys    string
	strict  bool
	grace   time.Duration
}

func newServe() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve a model over an OpenAI-compatible HTTP API",
		Long: `Serve a model: /v1/chat/completions, /v1/completions, /v1/models, /health and /metrics. Requests that run at
the same time share decode batches; a request beyond --parallel waits, one beyond --queue gets 429 with Retry-After.
SIGTERM and Ctrl-C let the answers under way finish.`,
		Example: `  sandwich serve
  sandwich serve --model llama.gguf --listen 0.0.0.0:8080 --api-key-file keys.txt
  sandwich serve --model llama.gguf --plan llama.plan --parallel 16 --ctx 8192 --strict`,
		Args: exactArgs(0, ""),
	}
	f.session.add(c)
	f.add(c)
	c.Flags().StringVar(&f.keys, "api-key-file", "", "file with one API key a line; any of them opens everything but /health")
	c.Flags().BoolVar(&f.strict, "strict", false, "refuse to serve without a tuned plan that plan verify calls OPTIMAL or SUBOPTIMAL")
	c.RunE = func(c *cobra.Command, _ []string) error { return f.run(c.Context(), c.OutOrStdout()) }
	return c
}

// add gives a verb the flags of the engine's sizes and the address.
func (f *serveFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVar(&f.listen, "listen", "127.0.0.1:8080", "address and port")
	fs.IntVar(&f.sizes.parallel, "parallel", 8, "requests that run at the same time")
	fs.IntVar(&f.sizes.context, "ctx", 0, "most tokens of a request, prompt and answer (default 4096, or what the model was trained for)")
	fs.IntVar(&f.sizes.queue, "queue", 64, "requests that may wait")
	fs.IntVar(&f.sizes.mixedCap, "mixed-cap", 3, "rows of a decode batch that holds proactive (service_tier flex) and other requests")
	durationFlag(fs, &f.sizes.aging, "aging", 30*time.Second,
		"a proactive request without progress for this long becomes urgent")
	durationFlag(fs, &f.grace, "grace", 30*time.Second, "how long answers under way may take after SIGTERM")
}

func (f *serveFlags) check() error {
	s := &f.sizes
	switch {
	case s.parallel < 1 || s.parallel > maxParallel:
		return fmt.Errorf("--parallel %d: give a number from 1 to %d", s.parallel, maxParallel)
	case s.context < 0 || s.context > maxContext:
		return fmt.Errorf("--ctx %d: give a number of tokens up to %d", s.context, maxContext)
	case s.queue < 0 || s.queue > 1<<20:
		return fmt.Errorf("--queue %d: give a number from 0 to %d", s.queue, 1<<20)
	case s.mixedCap < 1 || s.mixedCap > maxParallel:
		return fmt.Errorf("--mixed-cap %d: give a number from 1 to %d", s.mixedCap, maxParallel)
	case s.aging <= 0 || f.grace <= 0:
		return errors.New("--aging and --grace need a duration above 0, such as 30s")
	}
	if _, _, err := net.SplitHostPort(f.listen); err != nil {
		return fmt.Errorf("--listen %s: give address:port, such as 127.0.0.1:8080", f.listen)
	}
	return nil
}

func (f *serveFlags) run(ctx context.Context, out io.Writer) error {
	if err := f.check(); err != nil {
		return usageError(err)
	}
	keys, err := readKeys(f.keys)
	if err != nil {
		return usageError(err)
	}
	ln, err := listen(f.listen) // before the model is loaded: a busy port shows at once
	if err != nil {
		return err
	}
	defer ln.Close()
	s, err := f.session.open()
	if err != nil {
		return err
	}
	defer s.Close()
	if f.strict && !s.plan.Tuned {
		return withCode(exitForeign, errors.New("--strict: no tuned plan fits this host and model; make one with `sandwich tune`"))
	}
	if f.strict && s.verdict.Judgement == plans.Retune {
		return withCode(exitFailed, fmt.Errorf("--strict: the plan %s asks for tuning again: %s", s.plan.Name, s.verdict.Reasons[0]))
	}
	return f.serve(ctx, out, s, ln, keys)
}

// serve answers on ln until ctx ends and the answers under way are done.
func (f *serveFlags) serve(ctx context.Context, out io.Writer, s *session, ln net.Listener, keys []string) error {
	if err := s.needTokenizer(); err != nil {
		return err
	}
	if f.sizes.context == 0 {
		f.sizes.context = s.contextLimit(4096)
	} else if s.shape.Context > 0 && f.sizes.context > s.shape.Context {
		fmt.Fprintf(os.Stderr, "note: --ctx %d is more than the %d tokens this model was trained for\n", f.sizes.context, s.shape.Context)
	}
	f.sizes.note = func(text string) { fmt.Fprintln(os.Stderr, "note:", text) }
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	if f.strict {
		f.sizes.displaced = func(err error) { leave(withCode(exitForeign, fmt.Errorf("--strict: %w", err))) }
	}
	e, err := s.engine(f.sizes)
	if err != nil {
		return err
	}
	defer e.Close()
	f.report(s, e)
	g := &generator{name: s.name, created: time.Now(), tok: s.tok, engine: e}
	announce(out, ln.Addr(), s.name, keys)
	err = server.New(g, server.Options{APIKeys: keys, Grace: f.grace}).Serve(ctx, ln)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "stopped")
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// report says on stderr what was loaded, and on a machine of several nodes where it lies.
func (f *serveFlags) report(s *session, e *engine.Engine) {
	m := e.Stats().Memory
	line := fmt.Sprintf("%s: weights %s, KV cache %s for %d requests of up to %d tokens", s.name, mem.FormatBytes(m.Weights), mem.FormatBytes(m.KV),
		f.sizes.parallel, f.sizes.context)
	fmt.Fprintln(os.Stderr, joinNonEmpty(", ", line, hugeText(e.Runner(), m)))
	if s.profile.Machine.Summary().NUMALocalities < 2 {
		return
	}
	if places, err := e.Placement(); err == nil {
		printPlacement(os.Stderr, places)
	}
}

// announce prints that requests are answered from now on, and one to try.
func announce(w io.Writer, addr net.Addr, name string, keys []string) {
	host := addr.String()
	if h, port, err := net.SplitHostPort(host); err == nil && net.ParseIP(h).IsUnspecified() {
		host = net.JoinHostPort("127.0.0.1", port)
	}
	auth := ""
	if len(keys) > 0 {
		auth = ` -H "Authorization: Bearer $API_KEY"`
	}
	fmt.Fprintf(w, "serving %s on http://%s; try:\n", name, host)
	fmt.Fprintf(w, `curl http://%s/v1/chat/completions%s -H 'Content-Type: application/json' -d '{"messages": [{"role": "user", "content": "Tell me a story about a fox."}], "max_tokens": 80, "temperature": 0.6}'`+"\n", host, auth)
}

func listen(addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is taken by another program: choose another port with --listen, such as --listen 127.0.0.1:8081", addr)
	}
	if err != nil {
		return nil, usageError(fmt.Errorf("--listen %s: %w", addr, err))
	}
	return ln, nil
}

// readKeys reads API keys, one a line; empty lines and lines that start with # do not count.
func readKeys(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	data, err := profiles.ReadRegular(path, 1<<20)
	if err != nil {
		return nil, fmt.Errorf("--api-key-file: %w", err)
	}
	var keys []string
	for line := range strings.Lines(string(data)) {
		if key := strings.TrimSpace(line); key != "" && !strings.HasPrefix(key, "#") {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("--api-key-file %s holds no key: write one a line", path)
	}
	return keys, nil
}
