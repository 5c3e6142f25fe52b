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

	// Embed reads texts to their end and returns what a pooled model makes of each. Its errors are
	// those of Generate.
	Embed(ctx context.Context, r api.Embedding) (api.Vectors, error)

	// Models lists what is served; the first one answers every request. There
	// is at least one.
	Models() []ModelInfo

	// Metrics are added to those of the server at each scrape.
	Metrics() []Metric

	texter
}

// texter is what a Generator makes of text without generating any. Its errors are those of
// Generate.
type texter interface {
	// Prompt is the tokens that a request comes to. A request that holds them as its Prompt is not
	// read again.
	Prompt(ctx context.Context, r *api.Request) ([]int32, error)
	// Render is the text that the messages and tools of a chat come to.
	Render(ctx context.Context, r *api.Request) (string, error)
	// Encode turns text into tokens: special adds what the model wants around a text, parse
	// recognizes control tokens that are spelled out.
	Encode(ctx context.Context, text string, special, parse bool) ([]int32, error)
	// Decode turns tokens into text, control tokens spelled out.
	Decode(ids []int32) (string, error)
	// Piece is the bytes of a token of the vocabulary.
	Piece(id int32) string
}

// ModelInfo describes a model for /v1/models.
type ModelInfo struct {
	ID       string
	Created  time.Time
	Context  int // tokens
	Parallel int // requests that run at the same time

	Vector     int    // numbers that a pooled model makes of a text; 0: it generates
	Scores     bool   // they are scores
	Arch       string // its family, as its file names it
	Type       string // the type of most of its weights
	Parameters int64
	Bytes      int64  // of its file
	Digest     string // of what its shapes are

	// Template is the source of the chat template that the model brings along, BOS and EOS are the
	// tokens around a text; empty: there is none.
	Template, BOS, EOS string
}

// readier is a Generator that can say why it takes no requests at present.
type readier interface{ Ready() error }
