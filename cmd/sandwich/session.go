package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/runtime/answer"
	"sandwich/runtime/demo"
	"sandwich/runtime/engine"
	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
	"sandwich/runtime/tokenizer"
)

// sessionFlags are what the verbs that run a model share: which model, under which plan, with which
// overrides.
type sessionFlags struct {
	model, plan      string
	isa, kv, compute string
	threads, ranks   int
	spin             time.Duration
	loading          loading
	wants            purpose
}

func (f *sessionFlags) add(c *cobra.Command) {
	f.addPlan(c)
	c.Flags().IntVarP(&f.threads, "threads", "t", 0, "worker threads, one a PU (default: as the plan says)")
}

// addPlan adds all of them but --threads.
func (f *sessionFlags) addPlan(c *cobra.Command) {
	f.addModel(c)
	c.Flags().StringVar(&f.plan, "plan", "", "plan bundle (default: the newest one for this host and model in "+
		dataFolderText+", else an untuned plan)")
}

// addModel adds all of them but --plan and --threads.
func (f *sessionFlags) addModel(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVarP(&f.model, "model", "m", "", "GGUF file (default: the embedded model)")
	fs.IntVar(&f.ranks, "tp", 0, "tensor-parallel ranks, each with PUs and memory of its own (default: as the "+
		"plan says, 1 without one)")
	fs.StringVar(&f.isa, "isa", "", "instruction set of the kernels: avx512, avx2, neon or go (default: the widest)")
	fs.StringVar(&f.kv, "kv", "", "type of the KV cache: f16, f32 or q8_0 (default: as the plan says, f16 without one)")
	fs.StringVar(&f.compute, "compute", "auto", "arithmetic of weights: auto (the faster by the rates of this "+
		"CPU), f32 (exact), int8 (quantized ones), bf16 (those of bf16, on a CPU with its dot products)")
	durationFlag(fs, &f.spin, "spin", 50*time.Microsecond,
		"how long a waiting worker spins before it sleeps; 0 sleeps at once")
}

// session is an opened model with the plan that it runs under.
type session struct {
	name    string
	file    *gguf.File
	shape   plans.ModelShape
	pooling model.Pooling
	scores  bool                 // a pooled model's answers are scores, not vectors
	tok     *tokenizer.Tokenizer // nil where the vocabulary cannot be used; tokErr says why
	tokErr  error
	profile *profiles.Profile
	plan    *plans.Plan
	verdict plans.Verdict // on the plan, where it comes from a bundle
	bundle  *plans.Bundle // it comes from; nil where it is untuned
	spin    time.Duration
	loading loading
	replan  func(*plans.ServiceConfig) (*plans.Plan, error) // engine.RunnerOptions.Replan
	fallen  map[fallenMemory]bool                           // that stderr was told of
}

// open reads the model, this machine, and the plan, and says on stderr which plan it is.
func (f *sessionFlags) open() (*session, error) {
	s, err := f.load()
	if err != nil {
		return nil, err
	}
	if err := s.choose(f); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// choose takes the plan that the flags ask for and says on stderr which it is.
func (s *session) choose(f *sessionFlags) error {
	f.loading.at("choosing the plan", 0)
	c, err := f.choosePlan(s.profile, s.shape)
	if err != nil {
		return err
	}
	s.plan, s.verdict, s.bundle = c.Plan, c.Verdict, c.Bundle
	s.replan = f.asked().Replan(s.profile, s.shape, s.plan)
	if quota := s.profile.Machine.QuotaCPUs; quota > 0 && quota < float64(s.profile.Allowed().Count()) {
		notice(fmt.Sprintf("the CPU quota is %.0f %%: plans use at most %d PUs at once", 100*quota,
			s.profile.QuotaPUs()))
	}
	notice(c.String())
	if c.Paths != "" {
		notice(c.Paths)
	}
	return nil
}

// notice says on stderr what a person should know about the run.
func notice(line string) { fmt.Fprintln(os.Stderr, printable(line)) }

// load reads the model and this machine.
func (f *sessionFlags) load() (*session, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	f.loading.at("reading the model", 0)
	file, name, err := openModel(f.model)
	if err != nil {
		return nil, usageError(err)
	}
	s := &session{name: name, file: file, spin: f.spin, loading: f.loading}
	if s.shape, err = model.ShapeOf(file); err != nil {
		s.Close()
		return nil, usageError(fmt.Errorf("%s: %w", name, err))
	}
	if err := s.suits(f.wants); err != nil {
		s.Close()
		return nil, usageError(err)
	}
	s.tok, s.tokErr = tokenizer.New(file)
	f.loading.at("probing the machine", 0)
	if s.profile, err = profiles.Live(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (f *sessionFlags) check() error {
	switch {
	case f.threads < 0:
		return usageError(fmt.Errorf("--threads %d: give a number of at least 1", f.threads))
	case f.ranks < 0:
		return usageError(fmt.Errorf("--tp %d: give a number of at least 1", f.ranks))
	case f.spin < 0 || f.spin > time.Second:
		return usageError(fmt.Errorf("--spin %s: give a duration from 0 to 1s", f.spin))
	case !slices.Contains([]string{"", "auto", "f32", "int8", "bf16"}, f.compute):
		return usageError(fmt.Errorf("--compute %s: give auto, f32, int8 or bf16", clip(f.compute, 20)))
	}
	return nil
}

// openModel opens a GGUF file, or the embedded model where no path is given.
func openModel(path string) (*gguf.File, string, error) {
	if path == "" {
		f, err := gguf.Parse(demo.Model())
		return f, demo.Name(), err
	}
	f, err := gguf.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("%w: name a GGUF file, or leave --model out for the embedded model", err)
	}
	if err != nil {
		return nil, "", err
	}
	return f, strings.TrimSuffix(filepath.Base(path), ".gguf"), nil
}

// Close gives the file back. Engines and runners over it must be closed before.
func (s *session) Close() { _ = s.file.Close() }

// runnerOptions are what every way of running the session starts from; done ends the progress bar.
func (s *session) runnerOptions(blocks, logitRows int) (o engine.RunnerOptions, done func()) {
	bar, done := byteProgress("loading " + s.name)
	const stage = "packing weights"
	s.loading.at(stage, 0)
	update := func(n, total int64) {
		bar(n, total)
		s.loading.at(stage, float64(n)/float64(max(total, 1)))
	}
	return engine.RunnerOptions{Options: exec.Options{File: s.file, Plan: s.plan, Blocks: blocks, LogitRows: logitRows,
		Spin: s.spinLimit(), Progress: update}, Replan: s.replan}, done
}

// withRunner opens a runner with room for the given number of positions, calls fn on its leading
// thread, and closes it. logitRows is how many positions of one forward may be asked for.
func (s *session) withRunner(ctx context.Context, positions, logitRows int,
	fn func(r *engine.Runner, l *pool.Leader) error) error {
	o, done := s.runnerOptions(kvcache.BlocksFor(positions), logitRows)
	o.Context = positions
	r, err := engine.Open(ctx, o)
	done()
	if err != nil {
		return modelError(err)
	}
	defer r.Close()
	s.noticeFallen(r)
	r.Lead(func(l *pool.Leader) { err = fn(r, l) })
	return err
}

// serving are the sizes of an engine.
type serving struct {
	context, parallel, queue int
	engine.Service
	observe   func(f engine.Forward) // engine.Options.Observe
	note      func(text string)      // engine.Options.Note
	displaced func(err error)        // engine.Options.Displaced
}

// blocks are how many blocks of the KV cache serving will have, before anything is loaded: the
// whole context of every parallel request where that takes no more than half of the memory that is
// left, else as many as fit there, and one context at least: requests then wait for blocks. Layers
// with windows take less than this.
func (s *session) blocks(v serving) int {
	need := kvcache.BlocksFor(v.context)
	blocks := need * v.parallel
	if free := mem.Available(); free > 0 {
		perBlock := s.plan.Model.KVBytesPerToken(s.plan.KV) * kvcache.BlockTokens
		blocks = max(need, min(blocks, int(free/2/max(perBlock, 1))))
	}
	return blocks
}

// engine loads the model for many requests at once. The memory that is left is shared as blocks
// says.
func (s *session) engine(ctx context.Context, v serving) (*engine.Engine, error) {
	need := kvcache.BlocksFor(v.context)
	o, done := s.runnerOptions(need*v.parallel, v.parallel)
	o.Least = need
	e, err := engine.New(ctx, engine.Options{RunnerOptions: o, Tokenizer: s.tok, Context: v.context,
		Parallel: v.parallel,
		Queue:    v.queue, Service: v.Service, Profile: s.profile, Observe: v.observe,
		Note: v.note, Displaced: v.displaced})
	done()
	if err == nil {
		s.noticeFallen(e.Runner())
	}
	return e, modelError(err)
}

// contextLimit is how many tokens a request may have where no flag says it.
func (s *session) contextLimit(most int) int {
	if s.shape.Context > 0 {
		return min(most, s.shape.Context)
	}
	return most
}

// modelError gives errors of loading their exit code: a model or plan that this program cannot run
// is an input.
func modelError(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, mem.ErrNoNode) {
		return withCode(exitForeign, fmt.Errorf("%w: the plan was made for other nodes, make one for this host "+
			"with `sandwich tune`", err))
	}
	if code := plans.ExitCode(err); code != exitFailed {
		return withCode(code, err)
	}
	return usageError(err)
}

// needTokenizer refuses to go on with a vocabulary that cannot be used.
func (s *session) needTokenizer() error {
	if s.tokErr != nil {
		return usageError(fmt.Errorf("%s: %w", s.name, s.tokErr))
	}
	return nil
}

// spinLimit is the wait policy of the pool: 0 of the flag means not to spin at all.
func (s *session) spinLimit() time.Duration {
	if s.spin == 0 {
		return pool.NoSpin
	}
	return s.spin
}

// loaded is a session and the engine over it.
type loaded struct {
	session *session
	engine  *engine.Engine
}

func (l *loaded) close() {
	l.engine.Close()
	l.session.Close()
}

// generator answers a server's requests.
func (l *loaded) generator(parallel int) *answer.Generator {
	s := l.session
	template, _ := s.file.String("tokenizer.chat_template")
	return answer.New(l.engine, s.tok, s.name, template, parallel, s.verdict.Judgement)
}
