package main

import (
	"context"
	"errors"
	"time"
)

// loading hears which stage of loading a model is under way, and which share of it is done; nil: nobody asks.
type loading func(stage string, share float64)

func (l loading) at(stage string, share float64) {
	if l != nil {
		l(stage, share)
	}
}

// errAbandoned says that loading was given up because the program is to end.
var errAbandoned = errors.New("stopped before the model was loaded")

// await returns what load returns. When ctx ends it waits for a moment more, since what heeds
// ctx, such as tuning, keeps what it has and says so. Opening a model and packing its weights do
// not heed it: they go on until the process ends, with whatever they hold, so that a server of
// hundreds of gigabytes stops as fast as a small one.
func await[T any](ctx context.Context, load func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := load()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		return r.value, r.err
	case <-time.After(300 * time.Millisecond):
		var none T
		return none, errAbandoned
	}
}
