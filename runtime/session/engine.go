package session

import (
	"context"
	"errors"
	"time"

	"sandwich/runtime/answer"
	"sandwich/runtime/background"
	"sandwich/runtime/engine"
	"sandwich/runtime/engine/drafting"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/kvcache/disk"
	"sandwich/runtime/mem"
	"sandwich/runtime/phase"
	"sandwich/runtime/pool"
	"sandwich/runtime/pool/poolset"
	"sandwich/runtime/sched"
	"sandwich/runtime/speculate"
)

// LoadError reports that the model of a session could not be loaded under its plan, because of the
// model, the plan or the machine. It wraps the cause.
type LoadError struct{ Err error }

func (e *LoadError) Error() string {
	if errors.Is(e.Err, mem.ErrNoNode) {
		return e.Err.Error() + ": the plan was made for other NUMA nodes; make one for this host with `sandwich tune`"
	}
	return e.Err.Error()
}

func (e *LoadError) Unwrap() error { return e.Err }

// Sizes configures Session.Engine.
type Sizes struct {
	Context, Parallel, Queue int   // like the fields of engine.Options
	Positions                int   // exec.Options.Context
	Blocks                   int   // of the KV cache; 0: as Engine says
	StateBytes               int64 // exec.Options.StateBytes
	engine.Service
	Speculation drafting.Options
	Prefixes    *disk.Store            // engine.PrefixOptions.Store
	AlwaysLoad  bool                   // engine.PrefixOptions.Always
	Observe     func(f engine.Forward) // engine.Options.Observe
	Note        func(text string)      // engine.Options.Note
	Cores       engine.Cores           // engine.Options.Cores, with Turns
	Turns       background.Turns       // exec.Options.Turns
	Pools       *poolset.Set           // exec.Options.Pools
	Displaced   func(err error)        // engine.Options.Displaced
}

// Engine loads the model and returns an engine that runs many requests at once. The KV cache holds
// the whole context of every parallel request if that takes at most half of the free memory. Else
// it has as many blocks as fit there, but at least one context, and requests wait for blocks.
// Sizes.Blocks sets another number. The error is a *LoadError. The caller closes the engine before
// the session.
func (s *Session) Engine(ctx context.Context, v Sizes) (*engine.Engine, error) {
	need := kvcache.BlocksFor(v.Context)
	o, done := s.RunnerOptions(need*v.Parallel, v.Parallel)
	o.Least, o.StateBytes, o.Context = need, v.StateBytes, v.Positions
	o.Turns, o.Pools = v.Turns, v.Pools
	if v.Blocks > 0 {
		o.Blocks, o.Least = v.Blocks, 0
	}
	options := engine.Options{Options: o, Context: v.Context, Parallel: v.Parallel, Queue: v.Queue,
		Service: v.Service, Speculation: v.Speculation, Profile: s.Profile, Observe: v.Observe, Note: v.Note,
		Displaced: v.Displaced, Cores: v.Cores, Occupancy: s.Occupancy, Accelerator: s.Accelerator,
		Prefixes: engine.PrefixOptions{Store: v.Prefixes, Model: s.Name, Always: v.AlwaysLoad}}
	if s.Bundle != nil {
		rows := sched.DecodeRows(v.Parallel, s.Plan.BatchMax)
		for _, c := range s.Bundle.Evidence.StepCurves(rows, &s.Plan.Model) {
			options.Speculation.Curves = append(options.Speculation.Curves,
				speculate.Curve{Positions: c.Positions, Times: c.Ratios, Measured: true})
		}
	}
	if s.Tok != nil {
		options.IsEnd = s.Tok.IsEOG
	}
	unused := false // the device is open, but the cores run both phases
	on := &options.Accelerator
	if refused := on.Refused; refused != nil {
		on.Refused = func(err error) { unused = true; refused(err) }
	}
	if chose := on.Chose; chose != nil {
		on.Chose = func(t engine.DeviceTimes, phases []phase.Phase) { unused = len(phases) == 0; chose(t, phases) }
	}
	e, err := engine.New(ctx, options)
	done()
	if err != nil {
		return nil, &LoadError{err}
	}
	if unused {
		use := s.WithoutDevice
		s.CloseDevice()
		if use != nil {
			e.Close()
			use()
			return s.Engine(ctx, v)
		}
	}
	s.NoticeMisplaced(e.Runner())
	return e, nil
}

// ContextLimit returns the default limit of a request in tokens: limit, or the context of the model
// if it is known and shorter.
func (s *Session) ContextLimit(limit int) int {
	if s.Shape.Context > 0 {
		return min(limit, s.Shape.Context)
	}
	return limit
}

// Generator returns a generator that answers the requests of a server with an engine of the
// session. parallel is the number of requests that run at the same time. The engine must outlive
// it.
func (s *Session) Generator(e *engine.Engine, parallel int) *answer.Generator {
	return answer.New(e, s.Tok, s.Describe(), parallel, s.Verdict.Judgement)
}

// Describe describes the model to clients.
func (s *Session) Describe() answer.Model {
	m := answer.Model{Name: s.Name, Arch: s.File.Architecture(), Bytes: s.File.Size(), Digest: s.Shape.Digest()}
	m.Template, _ = s.File.String("tokenizer.chat_template")
	elements := map[string]int64{}
	for _, t := range s.File.Tensors() {
		n, kind := int64(t.Elems()), t.Type.String()
		m.Parameters += n
		if elements[kind] += n; elements[kind] > elements[m.Type] {
			m.Type = kind
		}
	}
	return m
}

// MeasureHalts halts a prompt of so many tokens on the device n times; see
// engine.Accelerator.MeasureHalts.
func (s *Session) MeasureHalts(ctx context.Context, tokens, n int, bound time.Duration, seed uint64) (h engine.Halts,
	err error) {
	o, done := s.RunnerOptions(kvcache.BlocksFor(tokens+1), 1)
	o.Context = tokens + 1
	r, err := forward.Open(ctx, o)
	done()
	if err != nil {
		return h, &LoadError{err}
	}
	defer r.Close()
	a, err := engine.Accelerate(ctx, r, s.Accelerator, 1, tokens+1)
	if err != nil {
		return h, err
	}
	defer a.Close()
	r.Lead(func(l *pool.Leader) { h, err = a.MeasureHalts(ctx, r, l, tokens, n, bound, seed) })
	return h, err
}
