package generation

import (
	"context"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/server/metrics"
	"sandwich/runtime/server/request"
)

// Generator produces the answers. Methods may be called concurrently.
type Generator interface {
	// Generate runs one request. It calls emit for each token, in order and not concurrently, and
	// returns after the last call. emit may block for the write timeout while a client does not
	// read, so Generate must not call it from a loop that serves other requests. Generate returns
	// soon after ctx ends or emit fails, also during prefill, with an error that wraps the cause.
	//
	// Errors of package api are mapped to their HTTP statuses; any other error becomes status 500.
	Generate(ctx context.Context, r api.Request, emit func(api.Token) error) (api.Result, error)

	// Embed returns the vectors or scores of texts. Errors are like those of Generate.
	Embed(ctx context.Context, r api.Embedding) (api.Vectors, error)

	// Model describes the model.
	Model() ModelInfo

	// Metrics returns additional metrics for /metrics.
	Metrics() []metrics.Metric

	texter
}

// texter has the methods of a Generator that generate nothing. Errors are like those of Generate.
type texter interface {
	// Prompt returns the token ids of a request's prompt. It returns an existing Prompt unchanged.
	Prompt(ctx context.Context, r *api.Request) ([]int32, error)
	// Render returns the text of a chat after its template is applied.
	Render(ctx context.Context, r *api.Request) (string, error)
	// Encode returns the tokens of text. special adds the tokens that the model expects around a
	// text; parse recognizes control tokens in text.
	Encode(ctx context.Context, text string, special, parse bool) ([]int32, error)
	// Decode returns the text of tokens, control tokens included.
	Decode(ctx context.Context, ids []int32) (string, error)
	// Piece returns the bytes of a token. Another method must have succeeded before.
	Piece(id int32) string
}

// ModelInfo describes a model for /v1/models.
type ModelInfo struct {
	ID       string
	Created  time.Time
	Context  int // tokens
	Parallel int // requests that run at the same time

	Vector     int    // dimensions of the vectors of a pooled model; 0: the model generates text
	Scores     bool   // the vectors are scores
	Arch       string // architecture, as the model file names it
	Type       string // type of most weights
	Parameters int64
	Bytes      int64  // size of the model file
	Digest     string // of the model's shapes

	// State is StateLoaded, StateLoading or StateUnloaded if several models are served, else empty.
	State   string
	Aliases []string        // further names
	Urgency request.Urgency // of requests that state none, with keys that state none

	// Template is the source of the model's chat template; BOS and EOS are the tokens around a
	// text. Empty: none.
	Template, BOS, EOS string
}

// readier is a Generator that can report why it accepts no requests at present.
type readier interface{ Ready() error }
