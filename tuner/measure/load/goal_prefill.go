package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"sandwich/runtime/sched"
	"sandwich/tuner/replay"
)

// Lengths of the prompts of the goals about prefill, if the context allows, and the bounds.
const (
	longPrompt   = 2048
	minOfPrefill = 0.35
	maxArrival   = 25 * time.Millisecond
)

// long returns a proactive request with a long prompt.
func (s *Stage) long() replay.Request {
	return replay.Request{Class: sched.Proactive, Prompt: min(longPrompt, s.Context-1), Output: 1}
}

// quanta measures a decoding reactive request alone and while long proactive prompts wait. It
// compares the times between tokens and the speed of the prompts.
func (s *Stage) quanta(ctx context.Context) (out []Figure, err error) {
	err = s.with(ctx, sched.DefaultPolicy, s.Aging, func(by Target) error {
		r := replay.Request{Prompt: min(64, s.Context/2), Output: s.Context / 2}
		rest := func(ctx context.Context) error { return sleep(ctx, s.During) }
		alone, err := s.tokens(ctx, by, r, rest)
		if err != nil {
			return err
		}
		reads := func(n int) (speed float64, err error) {
			began := time.Now()
			for range n {
				if _, err := s.ask(ctx, by, s.long(), began, nil); err != nil {
					return 0, err
				}
			}
			return float64(n*s.long().Prompt) / time.Since(began).Seconds(), nil
		}
		own, err := reads(2)
		if err != nil {
			return err
		}
		var shared float64
		mixed, err := s.tokens(ctx, by, r, func(context.Context) (err error) {
			shared, err = reads(2)
			return err
		})
		if err != nil {
			return err
		}
		out = []Figure{
			{What: "reactive time from token to token, P90", Alone: replay.Quantile(alone, 0.9).Seconds(),
				Mixed: replay.Quantile(mixed, 0.9).Seconds(), Bound: maxTPOT, Samples: len(mixed)},
			{What: "the same, mean", Alone: replay.Mean(alone).Seconds(), Mixed: replay.Mean(mixed).Seconds(),
				Samples: len(mixed)},
			{What: fmt.Sprintf("proactive prefill of %d tokens", s.long().Prompt), Alone: own, Mixed: shared,
				Bound: minOfPrefill, Least: true, Rate: true, Samples: 2},
		}
		return nil
	})
	for i := range out {
		out[i].Policy = sched.DefaultPolicy
	}
	return out, err
}

// tokens decodes a request while a function runs, restarting it when it ends, and returns the times
// between tokens.
func (s *Stage) tokens(ctx context.Context, by Target, r replay.Request, while func(context.Context) error) (
	[]time.Duration, error,
) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var gaps []time.Duration
	failed, decodes := make(chan error, 1), make(chan struct{})
	go func() {
		began := sync.OnceFunc(func() { close(decodes) })
		defer began()
		for {
			var last time.Time
			_, err := s.ask(ctx, by, r, time.Now(), func(at time.Time) {
				if !last.IsZero() {
					gaps = append(gaps, at.Sub(last))
				}
				last = at
				began()
			})
			if err != nil {
				failed <- err
				return
			}
		}
	}()
	<-decodes
	err := while(ctx)
	stop()
	if failure := <-failed; !errors.Is(failure, context.Canceled) {
		err = failure
	}
	if err == nil && len(gaps) == 0 {
		err = fmt.Errorf("goal %s: the reactive request gave fewer than two tokens; raise --duration or --ctx",
			GoalQuanta)
	}
	return gaps, err
}

// halt sends short reactive requests during proactive prefill, each after the previous one has
// ended, and measures the wait for their first op: once with a young prefill, once with an aged
// one.
func (s *Stage) halt(ctx context.Context) (out []Figure, err error) {
	for _, aging := range []time.Duration{s.Aging, time.Millisecond} {
		err := s.with(ctx, sched.DefaultPolicy, aging, func(by Target) error {
			waits, err := s.arrivals(ctx, by)
			if err != nil {
				return err
			}
			of := "a proactive prefill"
			if aging != s.Aging {
				of = "an aged prefill"
			}
			for _, q := range []struct {
				name  string
				share float64
				bound time.Duration
			}{{"P50", 0.5, 0}, {"P99", 0.99, maxArrival}, {"longest", 1, 0}} {
				out = append(out, Figure{Policy: sched.DefaultPolicy, Samples: len(waits), Bound: q.bound.Seconds(),
					What:  fmt.Sprintf("reactive arrival to its first op, in %s, %s", of, q.name),
					Mixed: replay.Quantile(waits, q.share).Seconds()})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// arrivals returns the waits for the first forward of reactive requests that arrive at random times
// during proactive prefill.
func (s *Stage) arrivals(ctx context.Context, by Target) (waits []time.Duration, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	var prefills sync.WaitGroup
	for range 2 { // one is read, the other waits
		prefills.Go(func() {
			for ctx.Err() == nil {
				_, err := s.ask(ctx, by, s.long(), time.Now(), nil)
				if err != nil {
					stop(err)
				}
			}
		})
	}
	defer prefills.Wait()
	defer stop(nil)
	rng := rand.New(rand.NewPCG(s.Seed, 31))
	for end := time.Now().Add(s.During); time.Now().Before(end); {
		if err := sleep(ctx, time.Duration(rng.Int64N(int64(maxThought)))); err != nil {
			return nil, err
		}
		r := replay.Request{Prompt: min(16, s.Context-1), Output: 1}
		o, err := s.ask(ctx, by, r, time.Now(), nil)
		if err != nil {
			return nil, cmp.Or(context.Cause(ctx), err)
		}
		waits = append(waits, o.Pending())
	}
	return waits, nil
}

// maxThought is the maximum time until the next reactive request arrives.
const maxThought = 150 * time.Millisecond

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
