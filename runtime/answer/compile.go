package answer

import (
	"context"
	"errors"

	"sandwich/runtime/api"
	"sandwich/runtime/grammar"
)

// Bounds on the compilations of the process. At most shortAtOnce run at a time under the limits
// shortBytes and shortWork, which nearly all grammars need no more than; those that do begin again
// under the default limits, longAtOnce at a time, so that they do not delay the others.
// programBytes bounds the automata of all grammars, whether answers use them or not.
const (
	shortAtOnce  = 2
	shortBytes   = 2 << 20
	shortWork    = 1 << 20
	longAtOnce   = 1
	programBytes = 32 << 20
)

// compilations share the CPU and the memory for grammars among requests. Their methods may be
// called concurrently.
type compilations struct {
	memory      *grammar.Memory
	short, long gate // of compilations
	programs    gate // of bytes
}

func newCompilations() *compilations {
	return &compilations{memory: grammar.NewMemory(), short: gate{free: shortAtOnce}, long: gate{free: longAtOnce},
		programs: gate{free: programBytes}}
}

// source is what a grammar is compiled from.
type source struct {
	class   api.Class
	compile func(m *grammar.Meter) (*grammar.Grammar, error)
	// finish is called with the grammar before other compilations go on; it may take a while.
	finish func(g *grammar.Grammar)
}

// run compiles a grammar and takes the bytes of its program, which drop returns. It waits for its
// turn and for memory, until ctx ends. Errors are those of compile and of ctx.
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

// attempt is run in a lane of compilations and under its limits.
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

// drop gives up a grammar that takes so many bytes.
func (c *compilations) drop(g *grammar.Grammar, bytes int64) {
	g.Release()
	c.programs.release(bytes)
}
