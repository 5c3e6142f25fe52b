package engine

import (
	"slices"
	"time"

	"sandwich/runtime/cost"
	"sandwich/runtime/engine/drafting"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/offload/variants"
	"sandwich/runtime/phase"
	"sandwich/runtime/pool"
	"sandwich/runtime/prefix"
	"sandwich/runtime/sched"
)

// Counts are totals since the start of the engine.
type Counts struct {
	Requests, PromptTokens, GeneratedTokens int64
	Prefills, Decodes                       int64 // forwards; each part of a halted prefill counts
	PrefillTime, DecodeTime                 time.Duration
	LostDevices                             int64 // devices that failed
	Divided                                 int64 // prefills that a device and the cores computed together
}

// Forward describes a forward that ended, for timelines.
type Forward struct {
	Began, Ended time.Time
	Lane         string // name of the lane: of the device, or "cores"
	Prefill      bool
	Rows         [2]int // by request class
	Quantum      bool   // a proactive prefill next to reactive work
	Halted       bool
	Whole        bool      // all ops ran in this forward: it neither resumed nor halted
	Load         cost.Load // amount of work of the batch
}

// add counts a forward and its duration.
func (c *Counts) add(act *sched.Action, took time.Duration) {
	if act.Kind == sched.Decode {
		c.Decodes++
		c.DecodeTime += took
		return
	}
	c.Prefills++
	c.PrefillTime += took
}

// LaneState describes a lane and its forward in flight.
type LaneState struct {
	Name   string
	Cores  bool          // runs on the CPU cores
	Phases []phase.Phase // whose forwards it runs
	Busy   bool          // a forward is in flight; Phase and Rows describe it
	Phase  phase.Phase
	Rows   int // rows of a decode batch, or tokens of a prompt
}

// Stats is a snapshot of an engine for metrics and health checks.
type Stats struct {
	Counts
	Lanes     []LaneState
	Scheduler sched.Stats
	Pool      pool.Stats
	Memory    forward.Memory
	Places    pool.Places // PUs where the workers may run; Lost has workers whose PU is unavailable
	Quota     float64     // CPU quota of the cgroup, in CPUs; 0 when unlimited
	Drafts    []drafting.Counts
	Prefixes  *prefix.Stats  // of the prefix store; nil without one
	Variants  variants.Stats // kernels that the device compiled for the rows of prompts
	Failed    error          // error of all further requests: api.ErrClosed, *InternalError or nil
}

// report calls the observer with the forward that ended.
func (c *lane) report(act *sched.Action, done bool) {
	f := Forward{Began: c.ended.Add(-c.took), Ended: c.ended, Lane: c.e.sched.Lanes()[act.Lane].Name,
		Prefill: act.Kind != sched.Decode,
		Quantum: act.Quantum > 0, Halted: !done, Whole: done && act.Kind != sched.Resume, Load: loadOf(&c.batch)}
	add := func(id sched.ID, n int) {
		if j := c.e.jobs[id]; j != nil {
			f.Rows[j.req.Class] += n
		}
	}
	if len(act.Rows) == 0 {
		add(act.ID, act.N)
	}
	for _, r := range act.Rows {
		add(r.ID, r.N)
	}
	c.e.observe(f)
}

// Costs returns a copy of the table of op times measured so far, for predictions elsewhere.
func (e *Engine) Costs() *cost.Table {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cores.costs.Clone()
}

// Stats returns a snapshot of the engine.
func (e *Engine) Stats() Stats {
	var stored *prefix.Stats
	if e.stored.cache != nil {
		s := e.stored.cache.Stats()
		stored = &s
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := e.watch.available()
	s := Stats{Counts: e.counts, Scheduler: e.sched.Stats(), Pool: e.runner.Pool().Stats(), Memory: e.runner.Memory(),
		Places: seen.Places, Quota: seen.Quota, Failed: e.failed, Prefixes: stored,
		Drafts: e.drafting.Counts()}
	if d := e.onDevice.device; d != nil {
		s.Variants = d.Variants()
	}
	for i, l := range e.sched.Lanes() {
		s.Lanes = append(s.Lanes, stateOf(&l, e.driver.InFlight(sched.LaneID(i))))
	}
	return s
}

// stateOf returns the state of a lane whose forward in flight is act; nil: none is.
func stateOf(l *sched.Lane, act *sched.Action) LaneState {
	s := LaneState{Name: l.Name, Cores: l.Cores, Phases: slices.Clone(l.Phases)}
	if act == nil {
		return s
	}
	s.Busy, s.Phase = true, act.Kind.Phase()
	if len(act.Rows) == 0 {
		s.Rows = act.N
	}
	for _, r := range act.Rows {
		s.Rows += r.N
	}
	return s
}
