package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sandwich/runtime/api"
)

// A request may want several answers: n of each of its prompts. They are choices 0, 1, ... of one
// answer, n to a prompt. Copy k of a prompt draws with the seed and k added, so that it is what a
// request of its own with that seed would get. It begins when the first copy has its first token:
// the blocks of the prompt are there by then, and it computes what is behind the last whole one.

// maxChoices bounds the answers of one request.
const maxChoices = 128

// prompted is one of several prompts: text, or tokens.
type prompted struct {
	text string
	ids  []int32
}

// echoed is a prompt as it stands before its answers.
type echoed struct {
	text   string
	offset int // of its first token: below 0 where tokens stand for more than the text
}

// choices are how many answers a call wants.
func (c *call) choices() int { return c.n * max(1, len(c.prompts)) }

// group is the choices of a call while they run.
type group struct {
	*Server
	x      *exchange
	call   *call
	w      writer
	ctx    context.Context
	fail   context.CancelCauseFunc
	places chan struct{} // as many as the Generator runs at once
	runs   sync.WaitGroup
	mu     sync.Mutex // guards what is below, and one call of w at a time
	total  api.Result
}

// answer runs the choices of a call and has w write them. It returns their sum, or the first error,
// which ends them all.
func (s *Server) answer(ctx context.Context, x *exchange, c *call, w writer) (api.Result, error) {
	g := &group{Server: s, x: x, call: c, w: w, places: make(chan struct{}, max(1, s.gen.Models()[0].Parallel))}
	g.ctx, g.fail = context.WithCancelCause(ctx)
	defer g.fail(nil)
	if c.choices() == 1 {
		g.prompt(0)
	}
	for p := 0; c.choices() > 1 && p < c.choices()/c.n && g.take(); p++ {
		g.runs.Go(func() {
			defer g.leave()
			g.prompt(p)
		})
	}
	g.runs.Wait()
	if g.ctx.Err() != nil {
		return g.total, context.Cause(g.ctx)
	}
	return g.total, nil
}

// take waits for a place among those that run.
func (g *group) take() bool {
	select {
	case g.places <- struct{}{}:
		return true
	case <-g.ctx.Done():
		return false
	}
}

// leave gives a place back. It keeps what a Generator panics with from ending the process.
func (g *group) leave() {
	if p := recover(); p != nil {
		g.fail(fmt.Errorf("%v", p))
	}
	<-g.places
}

// prompt runs the choices of a prompt.
func (g *group) prompt(p int) {
	r, err := g.request(p)
	if err != nil {
		g.fail(err)
		return
	}
	first := p * g.call.n
	g.one(first, r, sync.OnceFunc(func() {
		for i := first + 1; i < first+g.call.n; i++ {
			g.runs.Go(func() {
				if g.take() {
					defer g.leave()
					g.one(i, r, func() {})
				}
			})
		}
	}))
}

// request is what the choices of a prompt share.
func (g *group) request(p int) (r api.Request, err error) {
	c := g.call
	r = c.Request
	if len(c.prompts) > 0 {
		r.Text, r.Prompt = c.prompts[p].text, c.prompts[p].ids
	}
	if c.n == 1 && c.echo == nil {
		return r, nil
	}
	if r.Prompt, err = g.gen.Prompt(g.ctx, &r); err != nil || c.echo == nil {
		return r, err
	}
	e := echoed{text: r.Text}
	if e.text == "" {
		if e.text, err = g.gen.Decode(r.Prompt); err != nil {
			return r, err
		}
	}
	if e.offset = len(e.text); r.OfPrompt {
		for _, id := range r.Prompt {
			e.offset -= len(g.gen.Piece(id))
		}
	}
	g.mu.Lock()
	c.echo[p] = e
	g.mu.Unlock()
	return r, nil
}

// one runs a choice to its end and calls begun when its prompt is computed. Once the first choice
// was let in, a full queue makes the others wait.
func (g *group) one(i int, r api.Request, begun func()) {
	r.Sampling.Seed += uint64(i % g.call.n)
	if i > 0 {
		r.Queued, r.Progress = nil, nil
	}
	emit := g.timed(g.x, func(t api.Token) error { return g.w.token(i, t) })
	for {
		res, err := g.gen.Generate(g.ctx, r, func(t api.Token) error {
			if !t.Prompt {
				begun()
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			return emit(t)
		})
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
		g.w.ended(i, &res)
		return
	}
}

// pause waits for a queue to become shorter.
func (g *group) pause(d time.Duration) bool {
	select {
	case <-time.After(min(max(d, 50*time.Millisecond), time.Second)):
		return true
	case <-g.ctx.Done():
		return false
	}
}

// add counts an answer in the sum: a prompt counts once, whatever the number of its answers.
func (g *group) add(i int, r *api.Result) {
	t := &g.total
	tokens, prompt, cached := t.Tokens+r.Tokens, t.PromptTokens, t.CachedTokens
	if i == 0 {
		*t = *r
	}
	if i%g.call.n == 0 {
		prompt += r.PromptTokens
		cached += r.CachedTokens
	}
	t.Tokens, t.PromptTokens, t.CachedTokens = tokens, prompt, cached
}
