// Package session opens a model with the plan that it runs under, which is what serve, generate and
// the benches start from: the file, its vocabulary, this machine, the plan, and then a runner or an
// engine over them.
package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"sandwich/plans"
	"sandwich/plans/selection"
	"sandwich/profiles"
	"sandwich/profiles/occupancy"
	"sandwich/runtime/demo"
	"sandwich/runtime/engine"
	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
	"sandwich/runtime/tokenizer"
)

// Session is an opened model with the plan that it runs under.
type Session struct {
	Name    string
	File    *gguf.File
	Shape   plans.ModelShape
	Tok     *tokenizer.Tokenizer // nil where the vocabulary cannot be used; CheckTokenizer says why
	tokErr  error
	Pooling model.Pooling // of a model that makes vectors, or Scores, of texts
	Scores  bool
	Profile *profiles.Profile
	Plan    *plans.Plan
	Verdict plans.Verdict                                   // on the plan, where it comes from a bundle
	Bundle  *plans.Bundle                                   // it comes from; nil where it is untuned
	Replan  func(*plans.ServiceConfig) (*plans.Plan, error) // engine.RunnerOptions.Replan

	// Accelerator runs forwards on a device, which Close closes. The zero value uses the cores
	// alone.
	Accelerator engine.DeviceOptions

	// Occupancy moves workers of an engine to PUs that others do not use; nil: they stay.
	Occupancy occupancy.Monitor

	Hooks
	misplaced map[misplacedMemory]bool // that was told
}

// Hooks is who follows a session, and how its workers wait.
type Hooks struct {
	Spin   time.Duration // how long a waiting worker spins before it sleeps; 0 sleeps at once
	Stages Stages
	Notice func(line string)                                               // what a person should know
	Bar    func(what string) (update func(done, total int64), done func()) // progress over bytes
}

// Stages hears which stage of loading is under way, and which share of it is done; nil: no listener
// asks.
type Stages func(stage string, share float64)

// At tells a stage.
func (l Stages) At(stage string, share float64) {
	if l != nil {
		l(stage, share)
	}
}

// Open reads a model and its vocabulary, not its weights: a GGUF file, or the embedded model where
// no path is given. Its errors are those of the file. What runs the session sets Profile and Plan
// first.
func Open(path string, h Hooks) (*Session, error) {
	h.Stages.At("reading the model", 0)
	file, name, err := OpenModel(path)
	if err != nil {
		return nil, err
	}
	s := &Session{Name: name, File: file, Hooks: h}
	if s.Shape, err = model.ShapeOf(file); err != nil {
		s.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c, err := model.ConfigOf(file)
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s.Pooling, s.Scores = c.Pooling, c.Scoring.Count > 0
	s.Tok, s.tokErr = tokenizer.New(file)
	return s, nil
}

// Use takes a plan that was chosen, and says which it is.
func (s *Session) Use(c *selection.Choice, replan func(*plans.ServiceConfig) (*plans.Plan, error)) {
	s.Plan, s.Verdict, s.Bundle, s.Replan, s.Occupancy = c.Plan, c.Verdict, c.Bundle, replan, c.Occupancy
	if quota := s.Profile.Machine.QuotaCPUs; quota > 0 && quota < float64(s.Profile.Allowed().Count()) {
		s.Notice(fmt.Sprintf("the CPU quota is %.0f %%: plans use at most %d PUs at once", 100*quota,
			s.Profile.QuotaPUs()))
	}
	s.Notice(c.String())
	if c.Paths != "" {
		s.Notice(c.Paths)
	}
}

// OpenModel opens a GGUF file, or the embedded model where no path is given.
func OpenModel(path string) (*gguf.File, string, error) {
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
func (s *Session) Close() {
	if s.Accelerator.Device != nil {
		_ = s.Accelerator.Device.Close() // its process ends with this one
	}
	_ = s.File.Close()
}

// RunnerOptions are what every way of running the session starts from; done ends the progress bar.
func (s *Session) RunnerOptions(blocks, logitRows int) (o engine.RunnerOptions, done func()) {
	bar, done := s.Bar("loading " + s.Name)
	const stage = "packing weights"
	s.Stages.At(stage, 0)
	update := func(n, total int64) {
		bar(n, total)
		s.Stages.At(stage, float64(n)/float64(max(total, 1)))
	}
	return engine.RunnerOptions{Options: exec.Options{File: s.File, Plan: s.Plan, Blocks: blocks, LogitRows: logitRows,
		Spin: s.spinLimit(), Progress: update}, Replan: s.Replan}, done
}

// WithRunner opens a runner with room for the given number of positions, calls fn on its leading
// thread, and closes it. most is how many positions a sequence could have, which rotations ask
// for, and logitRows how many of one forward may be asked for.
func (s *Session) WithRunner(ctx context.Context, positions, most, logitRows int,
	fn func(r *engine.Runner, l *pool.Leader) error) error {
	o, done := s.RunnerOptions(kvcache.BlocksFor(positions), logitRows)
	o.Context = max(positions, most)
	r, err := engine.Open(ctx, o)
	done()
	if err != nil {
		return &LoadError{err}
	}
	defer r.Close()
	s.NoticeMisplaced(r)
	r.Lead(func(l *pool.Leader) { err = fn(r, l) })
	return err
}

// CheckTokenizer refuses to go on with a vocabulary that cannot be used.
func (s *Session) CheckTokenizer() error {
	if s.tokErr != nil {
		return fmt.Errorf("%s: %w", s.Name, s.tokErr)
	}
	return nil
}

// spinLimit is the wait policy of the pool: 0 of the flag means not to spin at all.
func (s *Session) spinLimit() time.Duration {
	if s.Spin == 0 {
		return pool.NoSpin
	}
	return s.Spin
}
