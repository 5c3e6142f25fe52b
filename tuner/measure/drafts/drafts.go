// Package drafts measures speculative decoding on an engine: the time of decode steps by their
// number of rows, and the speed with and without drafts, interleaved.
package drafts

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/engine"
	"sandwich/runtime/speculate"
	"sandwich/tuner/measure/spread"
)

// Options configures Measure.
type Options struct {
	Requests []Request // that run at once
	Accept   float64   // probability that a drafted token of Replay is right
	Reps     int       // pairs of samples
	Rows     int       // most rows of a decode step
	Vocab    int       // tokens of the model
	Replay   *speculate.Replay
	Engine   *engine.Engine
	Steps    *Steps
	Step     func() // is called Reps+2 times

	runs uint64 // so far
}

// Request is a request whose answer has a fixed number of tokens. If Answer is set, the answer is
// forced to it.
type Request struct {
	Prompt, Answer []int32
	Tokens         int
}

// Row compares decoding with and without drafts. Its JSON is stable.
type Row struct {
	Test     string    `json:"test"`
	Requests int       `json:"requests"`
	Plain    float64   `json:"plain_tokens_per_second"`
	Drafted  float64   `json:"drafted_tokens_per_second"`
	Ratio    float64   `json:"ratio"`            // median over adjacent samples
	Low      float64   `json:"ratio_low"`        // lower end of its 95 % interval; 0 with fewer than six samples
	Accepted float64   `json:"acceptance"`       // accepted of drafted tokens
	Depth    float64   `json:"drafted_per_step"` // drafted tokens per decode step of a request
	Bound    float64   `json:"bound,omitempty"`  // of Ratio by the times of steps; 0 if not computed
	Times    []float64 `json:"step_seconds"`     // by rows - 1; 0 if not measured
	Used     []int     `json:"drafted_steps"`    // with drafts, steps by rows - 1
	Taken    []float64 `json:"drafted_seconds"`  // their median times; 0 if there were none
	Plains   []float64 `json:"plain_samples"`    // tokens/s
	Drafteds []float64 `json:"drafted_samples"`  // tokens/s
	Model    string    `json:"model"`
	Plan     string    `json:"plan"`
	PUs      string    `json:"pus"`
	CPU      string    `json:"cpu"`
}

// Steps collects the times of decode steps by their number of rows. Observe is for
// engine.Options.Observe.
type Steps struct {
	mu   sync.Mutex
	last time.Time
	list map[int][]float64 // seconds, by rows
}

// Observe records a forward that ended. A step lasts from the end of the forward before it.
func (s *Steps) Observe(f engine.Forward) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !f.Prefill && !s.last.IsZero() {
		if s.list == nil {
			s.list = map[int][]float64{}
		}
		s.list[f.Load.Rows] = append(s.list[f.Load.Rows], f.Ended.Sub(s.last).Seconds())
	}
	s.last = f.Ended
	if f.Prefill {
		s.last = time.Time{} // the first token of a request is drawn after a prompt
	}
}

// reset forgets all steps.
func (s *Steps) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = nil
}

// add adds the steps of another collection.
func (s *Steps) add(o *Steps) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.list == nil {
		s.list = map[int][]float64{}
	}
	for rows, list := range o.list {
		s.list[rows] = append(s.list[rows], list...)
	}
}

// medians returns the median time of steps of 1, 2, ... rows, 0 where there are none.
func (s *Steps) medians(rows int) []float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]float64, rows)
	for i := range out {
		out[i] = spread.Summarize(s.list[i+1]).Median
	}
	return out
}

// counts returns the number of steps of 1, 2, ... rows.
func (s *Steps) counts(rows int) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]int, rows)
	for i := range out {
		out[i] = len(s.list[i+1])
	}
	return out
}

// forced is a constraint that allows one answer. The model computes the logits of all its tokens.
type forced struct {
	answer []int32
	at     int
	mask   []uint64
}

// Allowed returns the next token of the answer.
func (f *forced) Allowed(int) []uint64 {
	clear(f.mask)
	f.mask[f.answer[f.at]/64] |= 1 << (f.answer[f.at] % 64)
	return f.mask
}

// Only returns false, so that the token is sampled.
func (*forced) Only(int) (int32, bool) { return 0, false }

// Accept advances.
func (f *forced) Accept(int32) error {
	f.at++
	return nil
}

// MustEnd reports the end of the answer.
func (f *forced) MustEnd() bool { return f.at == len(f.answer) }

// sample is the outcome of running all requests once.
type sample struct {
	speed             float64 // tokens/s, without the prompts
	drafted, accepted int
	steps             int
}

// run runs all requests at once with a depth of drafts. record is called with each answer.
func (o *Options) run(ctx context.Context, depth int, record func(r *Request, answer []int32)) (sample, error) {
	o.Engine.SetDraftDepth(depth)
	o.runs++
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	var mu sync.Mutex
	var out sample
	var first, last time.Time
	before := o.Engine.Stats().Decodes
	for i := range o.Requests {
		all.Go(func() {
			r := &o.Requests[i]
			ids, res, err := o.ask(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				cancel(err)
				return
			}
			out.drafted, out.accepted = out.drafted+res.DraftedTokens, out.accepted+res.AcceptedTokens
			out.speed += float64(res.Tokens - 1)
			if began := res.Arrived.Add(res.FirstToken); first.IsZero() || began.Before(first) {
				first = began
			}
			if ended := res.Arrived.Add(res.Total); ended.After(last) {
				last = ended
			}
			if record != nil {
				record(r, ids)
			}
		})
	}
	all.Wait()
	out.steps = int(o.Engine.Stats().Decodes - before)
	out.speed /= last.Sub(first).Seconds()
	return out, context.Cause(ctx)
}

// ask runs a request.
func (o *Options) ask(ctx context.Context, r *Request) (ids []int32, res api.Result, err error) {
	req := api.Request{Prompt: r.Prompt, MaxTokens: r.Tokens, IgnoreEOS: true}
	binary.LittleEndian.PutUint64(req.Salt[:], o.runs) // so that no run learns from the answers of another
	if r.Answer != nil {
		req.Constraint = &forced{answer: r.Answer, mask: make([]uint64, (o.Vocab+63)/64)}
	}
	res, err = o.Engine.Generate(ctx, req, func(t api.Token) error {
		ids = append(ids, t.ID)
		return nil
	})
	if err == nil && res.Tokens != r.Tokens {
		err = fmt.Errorf("a request got %d tokens of %d", res.Tokens, r.Tokens)
	}
	return ids, res, err
}

// Measure measures the requests with and without drafts. With a Replay it first measures the times
// of all numbers of rows and computes the bound. The caller sets the names of test, model, plan and
// CPU.
func Measure(ctx context.Context, o Options) (*Row, error) {
	row := &Row{Requests: len(o.Requests)}
	record := func(*Request, []int32) {}
	if o.Replay != nil {
		record = func(r *Request, answer []int32) { o.Replay.Record(r.Prompt, answer) }
	}
	if _, err := o.run(ctx, -1, record); err != nil {
		return nil, err
	}
	o.Step()
	if o.Replay != nil {
		o.Steps.reset()
		o.Replay.Accept = 1
		for range stepRounds {
			for depth := range o.Rows / len(o.Requests) {
				if _, err := o.run(ctx, cmp.Or(depth, -1), nil); err != nil {
					return nil, err
				}
			}
		}
		o.Replay.Accept = o.Accept
		row.Times = o.Steps.medians(o.Rows)
		row.Bound = bound(o.Accept, row.Times, len(o.Requests))
	}
	o.Steps.reset()
	var ratios []float64
	var total sample
	var all, used Steps // of plain and drafted runs; of drafted runs
	for rep := range o.Reps + 1 {
		plain, err := o.run(ctx, -1, nil)
		if err != nil {
			return nil, err
		}
		if o.Replay != nil {
			o.Replay.Seed = uint64(rep)
		}
		all.add(o.Steps)
		o.Steps.reset()
		drafted, err := o.run(ctx, 0, nil)
		if err != nil {
			return nil, err
		}
		if rep > 0 {
			used.add(o.Steps)
		}
		all.add(o.Steps)
		o.Steps.reset()
		if o.Step(); rep == 0 {
			continue // the controller learns
		}
		row.Plains, row.Drafteds = append(row.Plains, plain.speed), append(row.Drafteds, drafted.speed)
		ratios = append(ratios, drafted.speed/plain.speed)
		total.drafted, total.accepted = total.drafted+drafted.drafted, total.accepted+drafted.accepted
		total.steps += drafted.steps * len(o.Requests)
	}
	if row.Times == nil {
		row.Times = all.medians(o.Rows)
	}
	row.Used, row.Taken = used.counts(o.Rows), used.medians(o.Rows)
	row.Plain, row.Drafted = spread.Summarize(row.Plains).Median, spread.Summarize(row.Drafteds).Median
	row.Ratio = spread.Summarize(ratios).Median
	row.Low, _ = spread.MedianInterval(ratios)
	row.Accepted = float64(total.accepted) / math.Max(1, float64(total.drafted))
	row.Depth = float64(total.drafted) / math.Max(1, float64(total.steps))
	return row, nil
}

// stepRounds is the number of times that each number of rows is measured.
const stepRounds = 2

// bound returns the largest expected ratio of speeds with and without drafts of a fixed depth, for
// requests whose drafted tokens are accepted with a probability.
func bound(accept float64, times []float64, requests int) float64 {
	best, expected, p := 1.0, 1.0, 1.0
	for d := 1; requests*(1+d) <= len(times); d++ {
		p *= accept
		expected += p
		if t := times[requests*(1+d)-1]; t > 0 && times[requests-1] > 0 {
			best = max(best, expected*min(1, times[requests-1]/t)) // a faster step of more rows is noise
		}
	}
	return best
}
