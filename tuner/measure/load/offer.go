// Package load offers random or recorded requests of two classes to an engine or a server, and
// reports the latency of each class. bench load prints its rows.
package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/energy"
	"sandwich/runtime/energy/live"
	"sandwich/runtime/engine"
	"sandwich/runtime/sched"
	"sandwich/tuner/replay"
)

// Target serves the offered requests.
type Target interface {
	// Ask runs one request and calls token for each token as it arrives. It returns the request's
	// times in the queue. A refusal is an api.QueueFullError; any other error ends the run.
	Ask(ctx context.Context, prompt []int32, r replay.Request, token func()) (Stood, error)
	// Vocab returns the number of token ids that a prompt may use.
	Vocab() int
	// Begin starts a run. End adds what only the target knows of it.
	Begin()
	End(run *Run)
}

// Stood has the times of a request in a target's queue; the zero value if the target does not
// report them.
type Stood struct {
	Came    time.Time     // time of admission; unique per request
	Pending time.Duration // time until its first forward
}

// note sets the times of an outcome since began. Only the target knows the order in which it
// admitted requests that were sent at once.
func (s Stood) note(o *replay.Outcome, began time.Time) {
	if s.Pending > 0 {
		o.At = s.Came.Sub(began)
		o.Started = o.At + s.Pending
	}
}

// Run is the result of offering a trace.
type Run struct {
	*replay.Report
	Policy    string
	Simulated bool
	Model     string
	CPU       string
	Forwards  []engine.Forward // in order, for an engine in this process
	Began     time.Time
	Energy    energy.Reading // of the machine during the run; nil if simulated
	Goodput   float64        // requests per minute; 0: not measured, or none

	// Pace is the pace of the machine that a simulated run follows; Even is the result at an even
	// pace.
	Pace replay.Pace
	Even *replay.Report
}

// Offer sends each request of the trace at its time, regardless of earlier ones, and waits for all.
// A refusal is an outcome; any other error ends the run.
func Offer(ctx context.Context, t replay.Trace, seed uint64, target Target) (run *Run, err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	out := make([]replay.Outcome, len(t))
	texts := prompts(t, seed, target.Vocab())
	meter := live.Open("", nil)
	defer func() { err = errors.Join(err, meter.Close()) }()
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
				fail(err) // the first error counts
			case o.Tokens == 0:
				fail(errors.New("a request ended without a token"))
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	run = &Run{Began: began, Report: replay.NewReport(out, time.Since(began)-out[0].At, 0, sched.Stats{})}
	run.Energy = meter.Read()
	target.End(run)
	return run, nil
}

// prompts returns random tokens, so that no prefix is shared. It uses no ids of control tokens.
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
