// Package textio connects an engine, which reads and writes token ids, to text: it renders chats,
// encodes prompts and documents, assembles the text of answers and ends answers at stop strings.
package textio

import (
	"context"

	"sandwich/runtime/api"
	"sandwich/runtime/tokenizer"
)

// Engine runs requests of token ids; *engine.Engine implements it.
type Engine interface {
	// Context returns the limit of a request in tokens.
	Context() int
	// Generate runs one request and calls emit for each token. It ends without an error when emit
	// returns api.ErrStop.
	Generate(ctx context.Context, r api.Request, emit func(api.Token) error) (api.Result, error)
}

// Adapter is an engine with the tokenizer of its model. Its methods may be called concurrently.
type Adapter struct {
	engine Engine
	tok    *tokenizer.Tokenizer
	large  chan struct{} // capacity 1: held while a large text is encoded
	// FindMarks makes Prompt set Request.Marks. It must be set before the first request.
	FindMarks bool
}

// New returns the text interface of an engine. A nil tokenizer restricts it to Generate, and
// answers have no text.
func New(e Engine, tok *tokenizer.Tokenizer) *Adapter {
	return &Adapter{engine: e, tok: tok, large: make(chan struct{}, 1)}
}

// Generate runs a request of token ids and adds to each token the text that it completes. The
// answer ends before a stop string of the request. Text that was held back at the end comes with a
// last call of emit, whose token has the ID api.NoToken.
func (e *Adapter) Generate(ctx context.Context, r api.Request, emit func(api.Token) error) (api.Result, error) {
	text := newTranscript(e.tok, &r)
	stopped := false
	res, err := e.engine.Generate(ctx, r, func(t api.Token) error {
		t, stopped = text.push(t)
		if err := emit(t); err != nil || !stopped {
			return err
		}
		return api.ErrStop
	})
	switch {
	case err != nil:
		return res, err
	case stopped:
		res.StopString = text.stop.found
		return res, nil
	}
	rest, stopped := text.flush()
	if stopped {
		res.Finish, res.StopString = api.FinishStop, text.stop.found
	}
	if rest != "" {
		err = emit(api.Token{TokenLogprob: api.TokenLogprob{ID: api.NoToken}, Text: rest})
	}
	return res, err
}

// transcript turns the tokens of an answer into text: whole runes, held back while they may be the
// beginning of a stop string.
type transcript struct {
	stream *tokenizer.Stream // nil without a tokenizer
	stop   *stopper
	pieces *tokenizer.Tokenizer // spells tokens whose log probabilities are requested; else nil
}

func newTranscript(t *tokenizer.Tokenizer, r *api.Request) *transcript {
	out := &transcript{stop: newStopper(r.Stop)}
	if t != nil {
		out.stream = t.NewStream()
		out.stream.Special = r.Control
	}
	if r.Logprobs {
		out.pieces = t
	}
	return out
}

// push adds a token and returns it with its text and pieces, and whether a stop string ended the
// answer.
func (t *transcript) push(tok api.Token) (out api.Token, stopped bool) {
	if t.pieces != nil {
		tok.Piece = string(t.pieces.Piece(tok.ID))
		for i := range tok.Top {
			tok.Top[i].Piece = string(t.pieces.Piece(tok.Top[i].ID))
		}
	}
	if tok.End || tok.Prompt || t.stream == nil {
		return tok, false
	}
	tok.Text, stopped = t.stop.push(t.stream.Push(tok.ID))
	return tok, stopped
}

// flush returns the text held back at the end, and whether it was cut at a stop string.
func (t *transcript) flush() (text string, stopped bool) {
	if t.stream == nil {
		return "", false
	}
	text, stopped = t.stop.push(t.stream.Flush())
	if !stopped {
		text += t.stop.flush()
	}
	return text, stopped
}
