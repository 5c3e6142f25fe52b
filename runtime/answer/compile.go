package answer

import (
	"context"
	"errors"

	"sandwich/runtime/api"
	"sandwich/runtime/grammar"
)

// Bounds on the compilations of the process. At most shortAtOnce compilations run at a time under
// the limits shortBytes and shortWork, which suffice for nearly all grammars. Those that exceed
// them start again under the default limits, longAtOnce at a time, so that they do not delay the
// others. programBytes bounds the automata of all grammars, whether in use or not.
const (
	shortAtOnce  = 2
	shortBytes   = 2 << 20
	shortWork    = 1 << 20
	longAtOnce   = 1
	programBytes = 32 << 20
)

// compilations share CPU time and memory for grammars among requests. Methods may be called
// concurrently.
type compilations struct {
	memory      *grammar.Memory
	short, long gate // number of compilations
	programs    gate // bytes of automata
}

func newCompilations() *compilations {
	return &compilations{memory: grammar.NewMemory(), short: gate{free: shortAtOnce}, long: gate{free: longAtOnce},
		programs: gate{free: programBytes}}
}

// source is the input of a compilation.
type source struct {
	class   api.Class
	compile func(m *grammar.Meter) (*grammar.Grammar, error)
	// finish is called with the grammar before the next compilation starts; it may take long.
	finish func(g *grammar.Grammar)
}

// run compiles a grammar and reserves the bytes of its program, which drop returns. It waits for
// other compilations and for memory until ctx ends. Errors are those of compile and of ctx.
func (c *compilations) run(ctx context.Context, s source) (g *grammar.Grammar, bytes int64, err error) {
	g, bytes, err = c.attempt(ctx, s, &c.short, grammar.Limits{Bytes: shortBytes, Work: shortWork, Memory: c.memory})
	var refused *grammar.Error
	if errors.As(err, &refused) && refused.Limited() {
		g, bytes, err = c.attempt(ctx, s, &c.long, grammar.Limits{Memory: c.memory})
	}
	if ctx.Err() != nil && err != nil {
		err = ctx.Err()
	}
	return g, bytes, err
}

// attempt compiles within one queue of compilations and under its limits.
func (c *compilations) attempt(ctx context.Context, s source, lane *gate, limits grammar.Limits) (
	g *grammar.Grammar, bytes int64, err error) {
	if err := lane.acquire(ctx, s.class, 1); err != nil {
		return nil, 0, err
	}
	defer lane.release(1)
	if g, err = s.compile(grammar.NewMeter(ctx, limits)); err != nil {
		return nil, 0, err
	}
	bytes = min(g.Memory(), programBytes)
	if err := c.programs.acquire(ctx, s.class, bytes); err != nil {
		return nil, 0, err
	}
	s.finish(g)
	return g, bytes, nil
}

// drop releases a grammar and the bytes reserved for it.
func (c *compilations) drop(g *grammar.Grammar, bytes int64) {
	g.Release()
	c.programs.release(bytes)
}
