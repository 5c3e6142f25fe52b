package answer

import (
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/engine"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/server/status"
	"sandwich/topotree"
)

// DescribePlan sets the description of the plan that Plan returns. It must be called before the
// Generator is used.
func (g *Generator) DescribePlan(p *status.Plan) { g.plan = p }

// Plan returns the description of the plan, nil if none was set.
func (g *Generator) Plan() *status.Plan { return g.plan }

// Status returns the state of the engine.
func (g *Generator) Status() status.Live {
	s := g.engine.Stats()
	live := liveOf(&s)
	live.Seconds = time.Since(g.model.Created).Seconds()
	return live
}

// liveOf converts the statistics of an engine.
func liveOf(s *engine.Stats) status.Live {
	live := status.Live{
		Active:   pusOf(s.Pool.Active, s.Places.At),
		Lost:     pusOf(s.Places.Lost, s.Places.At),
		Quota:    s.Quota,
		Prefill:  status.Forwards{Count: s.Prefills, Seconds: s.PrefillTime.Seconds()},
		Decode:   status.Forwards{Count: s.Decodes, Seconds: s.DecodeTime.Seconds()},
		KV:       status.KV{Blocks: s.Scheduler.Blocks, Free: s.Scheduler.Free, BlockTokens: kvcache.BlockTokens},
		Switches: int64(s.Pool.Switches),
		Devices:  s.LostDevices,
		Tokens: status.Tokens{Prompt: s.PromptTokens, Reused: s.Scheduler.ReusedTokens,
			Loaded: s.Scheduler.LoadedTokens, Generated: s.GeneratedTokens},
	}
	for _, d := range s.Drafts {
		live.Tokens.Drafted += d.Drafted
		live.Tokens.Accepted += d.Accepted
	}
	for _, l := range s.Lanes {
		live.Lanes = append(live.Lanes, laneOf(&l))
	}
	for _, class := range []api.Class{api.Reactive, api.Proactive} {
		live.Queue = append(live.Queue, status.Class{Class: class.String(), Waiting: s.Scheduler.Waiting[class],
			Running: s.Scheduler.Running[class]})
	}
	return live
}

// laneOf converts the state of a lane.
func laneOf(l *engine.LaneState) status.Lane {
	out := status.Lane{Name: l.Name, Cores: l.Cores, Phases: []string{}}
	for _, p := range l.Phases {
		out.Phases = append(out.Phases, p.String())
	}
	if l.Busy {
		out.Phase, out.Rows = l.Phase.String(), l.Rows
	}
	return out
}

// pusOf returns the PUs of workers, given the PU of each worker. Workers that are not pinned have
// none.
func pusOf(workers, at []int) topotree.CPUSet {
	var pus []int
	for _, w := range workers {
		if w < len(at) && at[w] >= 0 {
			pus = append(pus, at[w])
		}
	}
	return topotree.NewCPUSet(pus...)
}
