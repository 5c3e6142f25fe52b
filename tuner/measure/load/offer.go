// Package load offers requests of two classes as they come by chance, or as they were recorded, to
// an engine or a server, and says what each class saw of it. bench load prints its rows.
package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/counters"
	"sandwich/runtime/engine"
	"sandwich/runtime/sched"
	"sandwich/tuner/replay"
)

// Target is who the requests are offered to.
type Target interface {
	// Ask runs one request and calls token for each token as it comes. It returns how the request
	// stood in the queue. A refusal is an api.QueueFullError; any other error ends the run.
	Ask(ctx context.Context, prompt []int32, r replay.Request, token func()) (Stood, error)
	// Vocab is how many token ids a prompt may hold.
	Vocab() int
	// Begin starts a run, and End adds what only the target knows of it.
	Begin()
	End(run *Run)
}

// Stood is how a request stood in a target's queue; the zero value where the target does not say.
type Stood struct {
	Came    time.Time     // it was taken in, the earlier of two before the other
	Pending time.Duration // until its first forward
}

// note gives an outcome its times since began: of several requests that are sent at once nobody but
// the target knows which it took in first.
func (s Stood) note(o *replay.Outcome, began time.Time) {
	if s.Pending > 0 {
		o.At = s.Came.Sub(began)
		o.Started = o.At + s.Pending
	}
}

// Run is what was seen of a trace.
type Run struct {
	*replay.Report
	Policy    string
	Simulated bool
	Model     string
	CPU       string
	Forwards  []engine.Forward // in order, on an engine in this process
	Began     time.Time
	Joules    float64 // of all packages, 0 where the machine does not say
	Goodput   float64 // requests a minute; 0: not looked for, or none

	// Of a simulated run, the machine's pace that it follows, and what it gives at an even one.
	Pace replay.Pace
	Even *replay.Report
}

// Offer sends each request of the trace at its time, whether those before have ended or not, and
// waits for all. A refusal is an outcome; any other error ends the run.
func Offer(ctx context.Context, t replay.Trace, seed uint64, target Target) (*Run, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	out := make([]replay.Outcome, len(t))
	texts := prompts(t, seed, target.Vocab())
	joules, unknown := counters.Joules()
	began := time.Now()
	target.Begin()
	var all sync.WaitGroup
	for i, r := range t {
		out[i].Request = r
		select {
		case <-time.After(time.Until(began.Add(r.At))):
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			o := &out[i]
			o.At = time.Since(began)
			stood, err := target.Ask(ctx, texts[i], r, func() {
				o.Tokens++
				o.End = time.Since(began)
				if o.Tokens == 1 {
					o.First = o.End
				}
			})
			stood.note(o, began)
			var full *api.QueueFullError
			switch {
			case errors.As(err, &full):
				o.Rejected = true
			case err != nil:
				fail(err) // the first one counts
			case o.Tokens == 0:
				fail(errors.New("a request ended without a token"))
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	run := &Run{Began: began, Report: replay.NewReport(out, time.Since(began)-out[0].At, 0, sched.Stats{})}
	if after, err := counters.Joules(); err == nil && unknown == nil {
		run.Joules = max(0, after-joules)
	}
	target.End(run)
	return run, nil
}

// prompts are random tokens, so that nothing is shared: ids that no vocabulary uses for
// control.
func prompts(t replay.Trace, seed uint64, vocab int) [][]int32 {
	rng := rand.New(rand.NewPCG(seed, 30))
	lo := min(vocab/2, 300)
	out := make([][]int32, len(t))
	for i, r := range t {
		out[i] = make([]int32, r.Prompt)
		for j := range out[i] {
			out[i][j] = int32(lo + rng.IntN(vocab-lo))
		}
	}
	return out
}
