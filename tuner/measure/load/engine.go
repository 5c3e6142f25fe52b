package load

import (
	"context"
	"sync"

	"sandwich/runtime/api"
	"sandwich/runtime/engine"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/phase"
	"sandwich/runtime/sched"
	"sandwich/tuner/replay"
)

// Engine is a Target for an engine in this process. Observe is the callback for engine.Options.
// Serve must be called before the first run.
type Engine struct {
	engine *engine.Engine
	stats  func() engine.Stats // of the engine

	mu       sync.Mutex
	forwards []engine.Forward
	before   engine.Stats
}

// Serve sets the engine.
func (e *Engine) Serve(by *engine.Engine) { e.engine, e.stats = by, by.Stats }

// Observe records a forward.
func (e *Engine) Observe(f engine.Forward) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forwards = append(e.forwards, f)
}

// Vocab returns the size of the model's vocabulary.
func (e *Engine) Vocab() int { return e.engine.Runner().Model.Dims.Vocab }

// Begin discards the forwards of the previous run. The engine holds its lock while it calls
// Observe, so that Begin and End must not call the engine while they hold the lock of the forwards.
func (e *Engine) Begin() {
	st := e.stats()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forwards, e.before = nil, st
}

// End adds the forwards and the scheduler's statistics to the run.
func (e *Engine) End(run *Run) {
	st := e.stats()
	e.mu.Lock()
	defer e.mu.Unlock()
	run.Forwards = e.forwards
	run.Busy = st.PrefillTime + st.DecodeTime - e.before.PrefillTime - e.before.DecodeTime
	run.Sched = st.Scheduler
	run.Sched.Stops -= e.before.Scheduler.Stops
	run.Sched.Quanta -= e.before.Scheduler.Quanta
	run.Sched.Preemptions -= e.before.Scheduler.Preemptions
	run.Sched.Promotions -= e.before.Scheduler.Promotions
}

// Ask runs a request to its last token.
func (e *Engine) Ask(
	ctx context.Context, prompt []int32, r replay.Request, token func(),
) (Stood, error) {
	res, err := e.engine.Generate(ctx,
		api.Request{Prompt: prompt, MaxTokens: r.Output, IgnoreEOS: true, Class: r.Class}, func(t api.Token) error {
			if t.ID != api.NoToken {
				token()
			}
			return nil
		})
	return Stood{Came: res.Arrived, Pending: res.Queued}, err
}

// Simulate runs the arrivals of a run on the virtual clock, with the op times of the engine and the
// pace of the machine in that run. o configures the scheduler; its blocks are the engine's, and at
// least those of one request of limit tokens.
func (e *Engine) Simulate(real *Run, o sched.Config, limit int) (*Run, error) {
	t := make(replay.Trace, len(real.Outcomes))
	for i := range real.Outcomes {
		t[i] = real.Outcomes[i].Request
	}
	pace := e.pace(real)
	report, err := e.replay(t, o, limit, pace)
	if err != nil {
		return nil, err
	}
	even, err := e.replay(t, o, limit, replay.Pace{})
	if err != nil {
		return nil, err
	}
	return &Run{Report: report, Policy: o.Policy, Simulated: true, Model: real.Model, CPU: real.CPU, Pace: pace,
		Even: even}, nil
}

// pace returns the pace of the machine in a run, from the forwards that were not halted.
func (e *Engine) pace(real *Run) replay.Pace {
	table := e.engine.Costs().Whole()
	var samples []replay.Sample
	for i := range real.Forwards {
		if f := &real.Forwards[i]; f.Whole {
			of := phase.Decode
			if f.Prefill {
				of = phase.Prefill
			}
			samples = append(samples, replay.Sample{At: f.Began.Sub(real.Began), Took: f.Ended.Sub(f.Began),
				Usual: table.Forward(of, f.Load)})
		}
	}
	return replay.NewPace(samples)
}

// Replay simulates any arrivals at an even pace.
func (e *Engine) Replay(t replay.Trace, o sched.Config, limit int) (*replay.Report, error) {
	return e.replay(t, o, limit, replay.Pace{})
}

func (e *Engine) replay(t replay.Trace, o sched.Config, limit int, pace replay.Pace) (*replay.Report, error) {
	o.Blocks, o.Chunk = max(e.engine.Runner().Blocks(), kvcache.BlocksFor(limit)), e.engine.Runner().Plan.Chunk
	return replay.Run(t, replay.Measured{Table: e.engine.Costs().Whole()}, replay.Options{Sched: o, Pace: pace})
}
