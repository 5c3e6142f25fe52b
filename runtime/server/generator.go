package server

import (
	"context"
	"time"

	"sandwich/runtime/api"
)

// Generator produces text for requests; the engine stands behind it.
type Generator interface {
	// Generate runs one request to its end. It calls emit once for each token,
	// in order, one call at a time, and returns after the last call. emit may
	// block for Options.WriteTimeout while a client does not read, so it must
	// not be called from the loop that serves other requests. Generate stops
	// soon after ctx ends or emit fails, during prefill too, and then returns an
	// error that wraps the cause.
	//
	// The errors of package api have answers of their own; any other error is
	// answered with status 500.
	Generate(ctx context.Context, r api.Request, emit func(api.Token) error) (api.Result, error)

	// Prompt is the tokens that a request comes to. A request that holds them as its Prompt is not
	// read again. Its errors are those of Generate.
	Prompt(ctx context.Context, r *api.Request) ([]int32, error)

	// Models lists what is served; the first one answers every request. There
	// is at least one.
	Models() []ModelInfo

	// Metrics are added to those of the server at each scrape.
	Metrics() []Metric
}

// ModelInfo describes a model for /v1/models.
type ModelInfo struct {
	ID      string
	Created time.Time
	Context int // tokens
}

// readier is a Generator that can say why it takes no requests at present.
type readier interface{ Ready() error }
