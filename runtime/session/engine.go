package session

import (
	"context"
	"errors"

	"sandwich/runtime/answer"
	"sandwich/runtime/engine"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
)

// LoadError says why a session's model could not be loaded under its plan: the model, the plan or
// the machine does not fit.
type LoadError struct{ Err error }

func (e *LoadError) Error() string {
	if errors.Is(e.Err, mem.ErrNoNode) {
		return e.Err.Error() + ": the plan was made for other nodes, make one for this host with `sandwich tune`"
	}
	return e.Err.Error()
}

func (e *LoadError) Unwrap() error { return e.Err }

// Sizes are those of an engine.
type Sizes struct {
	Context, Parallel, Queue int
	Positions                int   // that a sequence could have, where it is more than Context: rotations ask
	StateBytes               int64 // exec.Options.StateBytes
	engine.Service
	Observe   func(f engine.Forward) // engine.Options.Observe
	Note      func(text string)      // engine.Options.Note
	Displaced func(err error)        // engine.Options.Displaced
}

// Engine loads the model for many requests at once. The KV cache has the whole context of every
// parallel request where that takes no more than half of the memory that is left, else as many
// blocks as fit there, and one context at least: requests then wait for blocks.
func (s *Session) Engine(ctx context.Context, v Sizes) (*engine.Engine, error) {
	need := kvcache.BlocksFor(v.Context)
	o, done := s.RunnerOptions(need*v.Parallel, v.Parallel)
	o.Least, o.StateBytes, o.Context = need, v.StateBytes, v.Positions
	options := engine.Options{RunnerOptions: o, Context: v.Context, Parallel: v.Parallel, Queue: v.Queue,
		Service: v.Service, Profile: s.Profile, Observe: v.Observe, Note: v.Note, Displaced: v.Displaced,
		Occupancy: s.Occupancy, Accelerator: s.Accelerator}
	if s.Tok != nil {
		options.IsEnd = s.Tok.IsEOG
	}
	e, err := engine.New(ctx, options)
	done()
	if err != nil {
		return nil, &LoadError{err}
	}
	s.NoticeMisplaced(e.Runner())
	return e, nil
}

// ContextLimit is how many tokens a request may have where no flag says it.
func (s *Session) ContextLimit(most int) int {
	if s.Shape.Context > 0 {
		return min(most, s.Shape.Context)
	}
	return most
}

// Generator answers a server's requests by an engine of the session, of so many at a time.
func (s *Session) Generator(e *engine.Engine, parallel int) *answer.Generator {
	m := answer.Model{Name: s.Name, Arch: s.File.Architecture(), Bytes: s.File.Size(), Digest: s.Shape.Digest()}
	m.Template, _ = s.File.String("tokenizer.chat_template")
	most := map[string]int64{}
	for _, t := range s.File.Tensors() {
		n, kind := int64(t.Elems()), t.Type.String()
		m.Parameters += n
		if most[kind] += n; most[kind] > most[m.Type] {
			m.Type = kind
		}
	}
	return answer.New(e, s.Tok, m, parallel, s.Verdict.Judgement)
}
