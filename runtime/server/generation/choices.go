package generation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/request"
)

// A request may ask for n answers to each of its prompts. They become choices 0, 1, ... of one
// answer, n per prompt. Choice k of a prompt adds k to the seed, so it equals the answer to a
// single request with that seed. Choices after the first start when the first one has its first
// token: the KV blocks of the prompt are cached by then.

// group runs the choices of one call.
type group struct {
	*Runner
	gen    Generator
	x      *exchange.Exchange
	call   *request.Call
	w      writer
	ctx    context.Context
	fail   context.CancelCauseFunc
	places chan struct{} // a slot for each request that the Generator runs at the same time
	runs   sync.WaitGroup
	mu     sync.Mutex // guards total and calls of w
	total  api.Result
}

// answer runs the choices of a call and passes their tokens to w. It returns the sum of the
// results, or the first error, which also cancels the other choices.
func (s *Runner) answer(ctx context.Context, x *exchange.Exchange, c *request.Call, on Generator, w writer) (
	api.Result, error) {
	g := &group{Runner: s, gen: on, x: x, call: c, w: w, places: make(chan struct{}, max(1, on.Model().Parallel))}
	g.ctx, g.fail = context.WithCancelCause(ctx)
	defer g.fail(nil)
	if c.Choices() == 1 {
		g.runPrompt(0)
	}
	for p := 0; c.Choices() > 1 && p < c.Choices()/c.N && g.acquire(); p++ {
		g.runs.Go(func() {
			defer g.release()
			g.runPrompt(p)
		})
	}
	g.runs.Wait()
	if g.ctx.Err() != nil {
		return g.total, context.Cause(g.ctx)
	}
	return g.total, nil
}

// acquire waits for a free slot; it returns false if the call ended.
func (g *group) acquire() bool {
	select {
	case g.places <- struct{}{}:
		return true
	case <-g.ctx.Done():
		return false
	}
}

// release frees a slot. It turns a panic of the Generator into an error of the call.
func (g *group) release() {
	if p := recover(); p != nil {
		g.fail(fmt.Errorf("%v", p))
	}
	<-g.places
}

// runPrompt runs the choices of prompt p.
func (g *group) runPrompt(p int) {
	r, err := g.request(p)
	if err != nil {
		g.fail(err)
		return
	}
	first := p * g.call.N
	g.runChoice(first, r, sync.OnceFunc(func() {
		for i := first + 1; i < first+g.call.N; i++ {
			g.runs.Go(func() {
				if g.acquire() {
					defer g.release()
					g.runChoice(i, r, func() {})
				}
			})
		}
	}))
}

// request returns the request that the choices of prompt p share.
func (g *group) request(p int) (r api.Request, err error) {
	c := g.call
	r = c.Request
	if len(c.Prompts) > 0 {
		r.Text, r.Prompt = c.Prompts[p].Text, c.Prompts[p].IDs
	}
	if c.N == 1 && c.Echo == nil {
		return r, nil
	}
	if r.Prompt, err = g.gen.Prompt(g.ctx, &r); err != nil || c.Echo == nil {
		return r, err
	}
	e := request.Echo{Text: r.Text}
	if e.Text == "" {
		if e.Text, err = g.gen.Decode(g.ctx, r.Prompt); err != nil {
			return r, err
		}
	}
	if e.Offset = len(e.Text); r.OfPrompt {
		for _, id := range r.Prompt {
			e.Offset -= len(g.gen.Piece(id))
		}
	}
	g.mu.Lock()
	c.Echo[p] = e
	g.mu.Unlock()
	return r, nil
}

// runChoice runs choice i to its end. It calls begun once the prompt is computed. Choices after the
// first wait while the queue is full, because the request as a whole was already accepted.
func (g *group) runChoice(i int, r api.Request, begun func()) {
	r.Sampling.Seed += uint64(i % g.call.N)
	if i > 0 {
		r.Queued, r.Progress, r.Loading = nil, nil, nil
	}
	emit := g.timed(g.x, func(t api.Token) error { return g.w.Token(i, t) })
	for {
		res, err := g.gen.Generate(g.ctx, r, func(t api.Token) error {
			if !t.Prompt {
				begun()
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			return emit(t)
		})
		g.x.Phases(i, &res, err)
		var full *api.QueueFullError
		if i > 0 && errors.As(err, &full) && g.pause(full.RetryAfter) {
			continue
		}
		if err != nil {
			g.fail(err)
			return
		}
		begun()
		g.mu.Lock()
		defer g.mu.Unlock()
		g.add(i, &res)
		g.w.Ended(i, &res)
		return
	}
}

// pause waits for d, limited to 50 ms through 1 s; it returns false if the call ended.
func (g *group) pause(d time.Duration) bool {
	select {
	case <-time.After(min(max(d, 50*time.Millisecond), time.Second)):
		return true
	case <-g.ctx.Done():
		return false
	}
}

// add adds the result of choice i to the total. Prompt tokens count once per prompt.
func (g *group) add(i int, r *api.Result) {
	t := &g.total
	tokens, prompt, cached := t.Tokens+r.Tokens, t.PromptTokens, t.CachedTokens
	drafted, accepted := t.DraftedTokens+r.DraftedTokens, t.AcceptedTokens+r.AcceptedTokens
	if i == 0 {
		*t = *r
	}
	if i%g.call.N == 0 {
		prompt += r.PromptTokens
		cached += r.CachedTokens
	}
	t.Tokens, t.PromptTokens, t.CachedTokens = tokens, prompt, cached
	t.DraftedTokens, t.AcceptedTokens = drafted, accepted
}
