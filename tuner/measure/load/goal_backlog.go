package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/sched"
	"sandwich/tuner/replay"
)

// maxTPOT bounds the growth of a reactive request's time per token due to proactive work.
const maxTPOT = 2.0

// backlog offers the reactive arrivals alone, and under each policy with a backlog of proactive
// requests: twice as many as run at the same time always exist.
func (s *Stage) backlog(ctx context.Context) (out []Figure, err error) {
	reactive, proactive := only(s.Trace, sched.Reactive), only(s.Trace, sched.Proactive)
	if len(reactive) == 0 || len(proactive) == 0 {
		return nil, fmt.Errorf("goal %s: requests of both classes are needed; set both rates", GoalBacklog)
	}
	var alone *Run
	for _, policy := range s.Policies {
		err := s.with(ctx, policy, s.Aging, func(by Target) error {
			if alone == nil {
				if alone, err = Offer(ctx, reactive, s.fresh(), by); err != nil {
					return err
				}
			}
			b, err := s.behind(ctx, by, reactive, proactive)
			if err == nil {
				out = append(out, s.backlogFigures(policy, alone, b)...)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *Stage) backlogFigures(policy string, alone *Run, b *backlogged) (out []Figure) {
	run, n := b.run, len(b.run.Outcomes)
	out = append(out, Figure{Policy: policy, What: "reactive time per token, P90", Alone: alone.TPOT(0.9).Seconds(),
		Mixed: run.TPOT(0.9).Seconds(), Bound: bound(policy, maxTPOT), Samples: n},
		Figure{Policy: policy, What: "reactive time to the first token, P90", Alone: alone.TTFT(0.9).Seconds(),
			Mixed: run.TTFT(0.9).Seconds(), Samples: n})
	if waits, turns := longestTurn(b.list); turns > 0 {
		largest := 0.0
		if s.Aging > 0 {
			service := serviceTime(alone.Report)
			largest = (s.Aging + service).Seconds()
			s.Note(fmt.Sprintf("%s: a first quantum is due within aging, %.2f s, and what a reactive request takes "+
				"alone without its wait, %.2f s; %d proactive requests had one, %d aged", policy, s.Aging.Seconds(),
				service.Seconds(), turns, run.Sched.Promotions))
		}
		out = append(out, Figure{Policy: policy, What: "oldest proactive one's wait for its first quantum, at most",
			Mixed: waits.Seconds(), Bound: bound(policy, largest), Samples: turns})
	}
	tokens := 0
	for i := range b.list {
		if o := &b.list[i]; o.End > b.since && o.End <= b.since+run.Elapsed {
			tokens += o.Prompt + o.Tokens
		}
	}
	return append(out, Figure{Policy: policy, What: "proactive tokens/s, prompts and answers", Rate: true,
		Mixed: float64(tokens) / run.Elapsed.Seconds(), Samples: len(b.list)})
}

// backlogged is a run of reactive arrivals with the outcomes of the proactive requests, in times
// since the first of these.
type backlogged struct {
	run   *Run
	list  []replay.Outcome
	since time.Duration // start of the run
}

// behind offers reactive arrivals while proactive requests always wait. All requests run to their
// end.
func (s *Stage) behind(ctx context.Context, by Target, reactive, proactive replay.Trace) (*backlogged, error) {
	var mu sync.Mutex
	var list []replay.Outcome
	next, enough := 0, false
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	began := time.Now()
	draw := func() (r replay.Request, more bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return proactive[next%len(proactive)], !enough
	}
	var all sync.WaitGroup
	for range 2 * s.Parallel {
		all.Go(func() {
			for {
				r, more := draw()
				if !more {
					return
				}
				o, err := s.ask(ctx, by, r, began, nil)
				if err != nil {
					fail(err)
					return
				}
				mu.Lock()
				list = append(list, o)
				mu.Unlock()
			}
		})
	}
	select {
	case <-time.After(settling):
	case <-ctx.Done():
	}
	run, err := Offer(ctx, reactive, s.fresh(), by)
	mu.Lock()
	enough = true
	mu.Unlock()
	all.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err != nil {
		return nil, err
	}
	return &backlogged{run: run, list: list, since: run.Began.Sub(began)}, nil
}

// settling is the duration of a backlog before the measurement starts.
const settling = 500 * time.Millisecond

// ask sends one request now and returns its outcome, in times since began. A refusal is an outcome.
func (s *Stage) ask(
	ctx context.Context, by Target, r replay.Request, began time.Time, token func(at time.Time),
) (o replay.Outcome, err error) {
	o.Request = r
	o.At = time.Since(began)
	stood, err := by.Ask(ctx, prompts(replay.Trace{r}, s.fresh(), by.Vocab())[0], r, func() {
		now := time.Now()
		o.Tokens++
		if o.End = now.Sub(began); o.Tokens == 1 {
			o.First = o.End
		}
		if token != nil {
			token(now)
		}
	})
	stood.note(&o, began)
	var full *api.QueueFullError
	if errors.As(err, &full) {
		o.Rejected, err = true, nil
	}
	return o, err
}

// serviceTime returns the mean time of a request from its first forward on, or from its arrival if
// the forward is unknown. It must come from a run without other requests, because their delays
// would raise the bound.
func serviceTime(r *replay.Report) time.Duration {
	return r.Mean(func(o *replay.Outcome) time.Duration {
		if o.Started > 0 {
			return o.End - o.Started
		}
		return o.Latency()
	})
}

// longestTurn returns the longest time in which a request was the oldest one without a first
// forward, and the number of requests with a known first forward; a server does not report it. A
// first forward after the end of the reactive requests counts too.
func longestTurn(list []replay.Outcome) (longest time.Duration, turns int) {
	slices.SortFunc(list, func(a, b replay.Outcome) int { return cmp.Compare(a.At, b.At) })
	var oldest time.Duration // start of all earlier ones
	for i := range list {
		if o := &list[i]; o.Started > 0 {
			longest = max(longest, o.Started-max(o.At, oldest))
			oldest = max(oldest, o.Started)
			turns++
		}
	}
	return longest, turns
}
