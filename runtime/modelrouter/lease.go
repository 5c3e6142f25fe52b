package modelrouter

import (
	"context"
	"errors"
	"sync"

	"sandwich/runtime/api"
	"sandwich/runtime/modelcache"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/metrics"
	"sandwich/runtime/server/status"
)

// lease is the model of one request. It acquires the model at the first method that needs it and
// keeps it until Close.
type lease struct {
	model *Model

	mu       sync.Mutex
	instance modelcache.Instance // nil: not acquired
	release  func()
}

// get acquires the model. progress may be nil.
func (l *lease) get(ctx context.Context, progress func(share float64)) (modelcache.Instance, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.instance != nil {
		return l.instance, nil
	}
	i, release, err := l.model.Entry.Acquire(ctx, progress)
	var full *api.QueueFullError
	switch {
	case err == nil:
		l.instance, l.release = i, release
		return i, nil
	case ctx.Err() != nil || errors.As(err, &full) || errors.Is(err, api.ErrClosed):
		return nil, err
	}
	if l.model.Failed != nil {
		l.model.Failed(err)
	}
	return nil, &api.UnavailableError{Reason: "the model could not be loaded; the log of the server says why"}
}

// Close ends the use of the model.
func (l *lease) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.release != nil {
		l.release()
		l.release = nil
	}
}

// Model describes the model.
func (l *lease) Model() generation.ModelInfo { return l.model.describe() }

// Metrics returns nothing; see Router.Metrics.
func (l *lease) Metrics() []metrics.Metric { return nil }

// Status returns the state of the model. It does not load the model.
func (l *lease) Status() status.Live {
	live := status.Live{Lanes: []status.Lane{}, Queue: []status.Class{}}
	l.model.Entry.View(func(i modelcache.Instance) {
		if of, ok := i.(interface{ Status() status.Live }); ok {
			live = of.Status()
		}
	})
	live.Model = l.model.Info.ID
	live.State, live.Loading = l.model.Entry.Progress()
	return live
}

// Plan returns the description of the plan of the last load, or of the next one if the model was
// not loaded yet; nil: unknown.
func (l *lease) Plan() *status.Plan {
	if l.model.Plan == nil {
		return nil
	}
	return l.model.Plan()
}

// Generate implements generation.Generator.
func (l *lease) Generate(ctx context.Context, r api.Request, emit func(api.Token) error) (api.Result, error) {
	i, err := l.get(ctx, r.Loading)
	if err != nil {
		return api.Result{}, err
	}
	return i.Generate(ctx, r, emit)
}

// Embed implements generation.Generator.
func (l *lease) Embed(ctx context.Context, r api.Embedding) (api.Vectors, error) {
	i, err := l.get(ctx, nil)
	if err != nil {
		return api.Vectors{}, err
	}
	return i.Embed(ctx, r)
}

// Prompt implements generation.Generator.
func (l *lease) Prompt(ctx context.Context, r *api.Request) ([]int32, error) {
	i, err := l.get(ctx, r.Loading)
	if err != nil {
		return nil, err
	}
	return i.Prompt(ctx, r)
}

// Render implements generation.Generator.
func (l *lease) Render(ctx context.Context, r *api.Request) (string, error) {
	i, err := l.get(ctx, r.Loading)
	if err != nil {
		return "", err
	}
	return i.Render(ctx, r)
}

// Encode implements generation.Generator.
func (l *lease) Encode(ctx context.Context, text string, special, parse bool) ([]int32, error) {
	i, err := l.get(ctx, nil)
	if err != nil {
		return nil, err
	}
	return i.Encode(ctx, text, special, parse)
}

// Decode implements generation.Generator.
func (l *lease) Decode(ctx context.Context, ids []int32) (string, error) {
	i, err := l.get(ctx, nil)
	if err != nil {
		return "", err
	}
	return i.Decode(ctx, ids)
}

// Piece implements generation.Generator. The model must have been acquired.
func (l *lease) Piece(id int32) string { return l.instance.Piece(id) }
