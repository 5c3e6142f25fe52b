// Package session opens a model together with the plan that it runs under, for serve, generate and
// the benchmarks: the file, its vocabulary, the profile of this machine and the plan. A Session
// then opens a runner or an engine.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/check"
	"sandwich/plans/selection"
	"sandwich/profiles"
	"sandwich/profiles/occupancy"
	"sandwich/runtime/demo"
	"sandwich/runtime/engine"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/pool"
	"sandwich/runtime/tokenizer"
)

// Session is an open model with the plan that it runs under. It is not safe for concurrent use.
type Session struct {
	Name    string
	File    *gguf.File
	Shape   plans.ModelShape
	Tok     *tokenizer.Tokenizer // nil if the vocabulary cannot be used; CheckTokenizer returns why
	tokErr  error
	Pooling model.Pooling // NoPooling if the model generates text
	Scores  bool          // the model computes scores of texts
	Profile *profiles.Profile
	Plan    *plans.Plan
	Verdict check.Verdict                                   // on the plan, if it comes from a bundle
	Bundle  *bundle.Bundle                                  // of the plan; nil if the plan is untuned
	Replan  func(*plans.ServiceConfig) (*plans.Plan, error) // engine.RunnerOptions.Replan

	// Accelerator runs forwards on a device, which Close closes. The zero value uses only the
	// cores.
	Accelerator engine.DeviceOptions

	// WithoutDevice calls Use with the plan of the cores alone, for an engine that refuses the
	// device or finds it slower. nil: the plan is the same.
	WithoutDevice func()

	// Occupancy moves workers of an engine to PUs that other processes do not use; nil: never.
	Occupancy occupancy.Monitor

	Hooks
	misplaced map[misplacedMemory]bool // reported before
	unpinned  string                   // note about workers that was reported before
}

// Hooks holds the callbacks of a session and its spin time.
type Hooks struct {
	Spin   time.Duration // how long a waiting worker spins before it sleeps; 0 sleeps at once
	Stages Stages
	Notice func(line string)                                               // receives messages for the user
	Bar    func(what string) (update func(done, total int64), done func()) // starts a progress bar in bytes
}

// Stages receives the current stage of loading and the completed fraction of it, 0 to 1. It may be
// nil.
type Stages func(stage string, share float64)

// At calls l with a stage, unless l is nil.
func (l Stages) At(stage string, share float64) {
	if l != nil {
		l(stage, share)
	}
}

// Open reads a model and its vocabulary, but not its weights: a GGUF file, or the embedded model if
// path is "". It fails if the file cannot be opened or its model is not supported; for an unusable
// vocabulary see CheckTokenizer. The caller sets Profile and calls Use before it runs the session.
func Open(path string, h Hooks) (*Session, error) {
	h.Stages.At("reading the model", 0)
	file, name, err := OpenModel(path)
	if err != nil {
		return nil, err
	}
	s := &Session{Name: name, File: file, Hooks: h}
	if s.Shape, err = modelshape.Of(file); err != nil {
		s.Close()
		return nil, fmt.Errorf("%s: %w", cmp.Or(path, name), err)
	}
	c, err := arch.ConfigOf(file)
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("%s: %w", cmp.Or(path, name), err)
	}
	s.Pooling, s.Scores = c.Pooling, c.Scoring.Count > 0
	s.Tok, s.tokErr = tokenizer.New(file)
	return s, nil
}

// Use sets the plan of the session and reports it through Notice. Profile must be set.
func (s *Session) Use(c *selection.Choice, replan func(*plans.ServiceConfig) (*plans.Plan, error)) {
	s.Plan, s.Verdict, s.Bundle, s.Replan, s.Occupancy = c.Plan, c.Verdict, c.Bundle, replan, c.Occupancy
	if quota := s.Profile.Machine.QuotaCPUs; quota > 0 && quota < float64(s.Profile.Allowed().Count()) {
		s.Notice(fmt.Sprintf("the CPU quota is %.0f %%: plans use at most %d PUs at once", 100*quota,
			s.Profile.QuotaPUs()))
	}
	s.Notice(c.String())
	for _, text := range []string{c.Paths, c.Lacks} {
		if text != "" {
			s.Notice(text)
		}
	}
}

// OpenModel opens a GGUF file, or the embedded model if path is "", and returns its name.
func OpenModel(path string) (*gguf.File, string, error) {
	if path == "" {
		f, err := gguf.Parse(demo.Model())
		return f, demo.Name(), err
	}
	f, err := gguf.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("%w; name a GGUF file, or leave --model out for the embedded model", err)
	}
	if err != nil {
		return nil, "", err
	}
	return f, strings.TrimSuffix(filepath.Base(path), ".gguf"), nil
}

// Close closes the device and the file. Engines and runners of the session must be closed before.
func (s *Session) Close() {
	s.CloseDevice()
	_ = s.File.Close()
}

// CloseDevice closes the device, if any. Engines and runners that use it must be closed before.
func (s *Session) CloseDevice() {
	if s.Accelerator.Device != nil {
		_ = s.Accelerator.Device.Close() // its process ends with this one
	}
	s.Accelerator, s.WithoutDevice = engine.DeviceOptions{}, nil
}

// RunnerOptions returns the options that engines and runners of the session share, with the given
// number of KV blocks and rows of logits. It starts a progress bar, which done ends.
func (s *Session) RunnerOptions(blocks, logitRows int) (o forward.Options, done func()) {
	bar, done := s.Bar("loading " + s.Name)
	const stage = "packing weights"
	s.Stages.At(stage, 0)
	update := func(n, total int64) {
		bar(n, total)
		s.Stages.At(stage, float64(n)/float64(max(total, 1)))
	}
	o = forward.Options{Options: exec.Options{File: s.File, Plan: s.Plan, Blocks: blocks, LogitRows: logitRows,
		Spin: s.spinLimit(), Progress: update}, Replan: s.Replan}
	if s.Accelerator.Memory != nil {
		o.Memory = s.Accelerator.Memory.Alloc
	}
	return o, done
}

// WithRunner opens a runner with a KV cache of the given number of positions, calls fn on the
// thread of worker 0, closes the runner and returns the error of fn. max(positions, limit) is
// exec.Options.Context, and logitRows is exec.Options.LogitRows. If the runner cannot be opened,
// the error is a *LoadError.
func (s *Session) WithRunner(ctx context.Context, positions, limit, logitRows int,
	fn func(r *forward.Runner, l *pool.Leader) error) error {
	o, done := s.RunnerOptions(kvcache.BlocksFor(positions), logitRows)
	o.Context = max(positions, limit)
	r, err := forward.Open(ctx, o)
	done()
	if err != nil {
		return &LoadError{err}
	}
	defer r.Close()
	s.NoticeMisplaced(r)
	r.Lead(func(l *pool.Leader) { err = fn(r, l) })
	return err
}

// CheckTokenizer returns an error if the vocabulary cannot be used.
func (s *Session) CheckTokenizer() error {
	if s.tokErr != nil {
		return fmt.Errorf("%s: %w", cmp.Or(s.File.Path(), s.Name), s.tokErr)
	}
	return nil
}

// spinLimit returns pool.Options.Spin for the spin time, in which 0 means never to spin.
func (s *Session) spinLimit() time.Duration {
	if s.Spin == 0 {
		return pool.NoSpin
	}
	return s.Spin
}
