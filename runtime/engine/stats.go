package engine

import (
	"time"

	"sandwich/runtime/cost"
	"sandwich/runtime/pool"
	"sandwich/runtime/sched"
)

// Counts are totals since the start.
type Counts struct {
	Requests, PromptTokens, GeneratedTokens int64
	Prefills, Decodes                       int64 // forwards; a halted prefill and its end are two
	PrefillTime, DecodeTime                 time.Duration
}

func (c *Counts) add(act *sched.Action, took time.Duration) {
	if act.Kind == sched.Decode {
		c.Decodes++
		c.DecodeTime += took
		return
	}
	c.Prefills++
	c.PrefillTime += took
}

// Stats is a snapshot for metrics and health.
type Stats struct {
	Counts
	Scheduler sched.Stats
	Pool      pool.Stats
	Memory    Memory
	Places    pool.Places // where the workers may run; Lost is empty unless the system took PUs away
	Quota     float64     // CPU time per time that cgroups grant; 0 when unlimited
	Failed    error       // why no request is taken any more: api.ErrClosed or *InternalError
}

// Forward is one forward as it was, for timelines.
type Forward struct {
	Began, Ended time.Time
	Prefill      bool
	Rows         [2]int // by class of their requests
	Quantum      bool   // a proactive prefill beside reactive work
	Halted       bool
	Whole        bool      // all of its ops ran, none before it was halted
	Load         cost.Load // what they worked on
}

// tell tells of the forward that ended.
func (c *cores) tell(act *sched.Action, done bool) {
	f := Forward{Began: c.ended.Add(-c.took), Ended: c.ended, Prefill: act.Kind != sched.Decode,
		Quantum: act.Quantum > 0, Halted: !done, Whole: done && act.Kind != sched.Resume, Load: loadOf(&c.batch)}
	add := func(id sched.ID, n int) {
		if j := c.jobs[id]; j != nil {
			f.Rows[j.req.Class] += n
		}
	}
	if len(act.Rows) == 0 {
		add(act.ID, act.N)
	}
	for _, r := range act.Rows {
		add(r.ID, r.N)
	}
	c.observe(f)
}

// Costs is what the ops of forwards took up to now, for predictions elsewhere.
func (e *Engine) Costs() *cost.Table {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cores.costs.Clone()
}

// Stats may be called at any time.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := e.watch.standing()
	return Stats{Counts: e.counts, Scheduler: e.sched.Stats(), Pool: e.runner.Pool().Stats(), Memory: e.runner.Memory(),
		Places: seen.places, Quota: seen.quota, Failed: e.failed}
}
