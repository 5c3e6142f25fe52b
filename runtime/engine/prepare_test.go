package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"sandwich/runtime/api"
)

// anyToken is a constraint that allows everything.
type anyToken struct{ all []uint64 }

func (a *anyToken) Allowed(int) []uint64   { return a.all }
func (a *anyToken) Only(int) (int32, bool) { return 0, false }
func (a *anyToken) Accept(int32) error     { return nil }
func (a *anyToken) MustEnd() bool          { return false }

// preparing is a request whose constraint is made when the test says so.
type preparing struct {
	begun chan context.Context
	made  chan error
}

func newPreparing() *preparing {
	return &preparing{make(chan context.Context, 1), make(chan error)}
}

// request returns the request, whose Prepare waits for made or the end of its context.
func (p *preparing) request(e *Engine) api.Request {
	return api.Request{Prompt: tinyPrompt(1, 20), MaxTokens: 3, IgnoreEOS: true,
		Prepare: func(ctx context.Context) (api.Constraint, error) {
			p.begun <- ctx
			select {
			case err := <-p.made:
				words := make([]uint64, (e.runner.Model.Dims.Vocab+63)/64)
				for i := range words {
					words[i] = ^uint64(0)
				}
				return &anyToken{words}, err
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}
}

// outcome is what a request came to.
type outcome struct {
	res api.Result
	err error
}

// start runs a request in the background.
func start(ctx context.Context, e *Engine, r api.Request) chan outcome {
	out := make(chan outcome, 1)
	go func() {
		res, err := e.Generate(ctx, r, func(api.Token) error { return nil })
		out <- outcome{res, err}
	}()
	return out
}

// TestPrepare checks that a constraint is made after the request has a place in the queue, that
// others run meanwhile, and that the time counts as time in the queue.
func TestPrepare(t *testing.T) {
	o := tinyOptions(t)
	o.Parallel, o.Queue = 1, 0
	e := open(t, o)
	p := newPreparing()
	waits := start(t.Context(), e, p.request(e))
	<-p.begun
	begun := time.Now()
	// The one row is promised to the request that prepares, but it is free.
	if _, err := e.Generate(t.Context(), api.Request{Prompt: tinyPrompt(2, 9), MaxTokens: 2, IgnoreEOS: true},
		func(api.Token) error { return nil }); err != nil {
		t.Errorf("a request next to one that prepares: %v", err)
	}
	full := newPreparing()
	var refused *api.QueueFullError
	if got := <-start(t.Context(), e, full.request(e)); !errors.As(got.err, &refused) {
		t.Errorf("a second request that prepares: %v, want that the queue is full", got.err)
	}
	if len(full.begun) != 0 {
		t.Error("a request that was refused prepared")
	}
	took := time.Since(begun)
	p.made <- nil
	got := <-waits
	if got.err != nil || got.res.Tokens != 3 || got.res.Queued < took {
		t.Errorf("%v: %d tokens, %v in the queue after %v", got.err, got.res.Tokens, got.res.Queued, took)
	}
	checkIdleSoon(t, e)
}

// TestPrepareEnds checks that a place is free again where Prepare fails, where the client hangs up
// meanwhile, and where the engine closes.
func TestPrepareEnds(t *testing.T) {
	o := tinyOptions(t)
	o.Parallel, o.Queue = 1, 0
	e := open(t, o)
	bad := errors.New("not a schema")
	p := newPreparing()
	out := start(t.Context(), e, p.request(e))
	<-p.begun
	p.made <- bad
	if got := <-out; !errors.Is(got.err, bad) {
		t.Errorf("%v", got.err)
	}
	ctx, hangUp := context.WithCancel(t.Context())
	out = start(ctx, e, p.request(e))
	<-p.begun
	hangUp()
	if got := <-out; !errors.Is(got.err, context.Canceled) {
		t.Errorf("%v", got.err)
	}
	checkIdleSoon(t, e)
	out = start(t.Context(), e, p.request(e))
	inside := <-p.begun
	e.Close()
	if got := <-out; !errors.Is(got.err, api.ErrClosed) {
		t.Errorf("%v", got.err)
	}
	if inside.Err() == nil {
		t.Error("the context of Prepare outlives the request")
	}
}
