package forward

import (
	"fmt"
	"slices"

	"sandwich/plans"
	"sandwich/runtime/engine/cpus"
	"sandwich/runtime/exec"
	"sandwich/runtime/phase"
	"sandwich/topotree"
)

// Team is the set of workers that run the forwards of a phase, and their schedules.
type Team struct {
	Workers  []int
	Executor *exec.Executor
}

// replanned caches the executors for one pair of teams, so that a cpuset that changes back and
// forth is planned once.
type replanned struct {
	prefill, decode []int // workers
	executors       [2]*exec.Executor
}

// maxReplanned is the limit of cached pairs of teams. Beyond it, the remaining workers share the
// slices of the plan's schedules.
const maxReplanned = 16

// TeamsFor returns the teams of both phases for the available CPUs, and a text that says whether
// new schedules were compiled for them. It may be called while a forward runs; UseTeams applies the
// teams.
func (r *Runner) TeamsFor(s cpus.State) (teams [2]Team, said string) {
	ranks := r.assembly.Workers.Ranks()
	for i, p := range r.phases {
		teams[i] = Team{s.Team(p.workers, ranks), p.planned}
	}
	if slices.Equal(teams[0].Workers, r.phases[0].workers) && slices.Equal(teams[1].Workers, r.phases[1].workers) {
		return teams, ""
	}
	executors, err := r.replan(teams[0].Workers, teams[1].Workers)
	if err != nil {
		return teams, fmt.Sprintf(" (requests continue under the old schedules: %v)", err)
	}
	teams[0].Executor, teams[1].Executor = executors[0], executors[1]
	return teams, fmt.Sprintf(" (planned again: prefill on %d, decode on %d workers)", len(teams[0].Workers),
		len(teams[1].Workers))
}

// replan compiles schedules for teams smaller than the plan's. It fails if they would change the
// layout or the arithmetic of the weights.
func (r *Runner) replan(prefill, decode []int) (executors [2]*exec.Executor, err error) {
	for _, old := range r.replans {
		if slices.Equal(old.prefill, prefill) && slices.Equal(old.decode, decode) {
			return old.executors, nil
		}
	}
	// Ranks with fewer PUs would have different shards, so several ranks keep their schedules.
	if r.replanner == nil || len(r.replans) == maxReplanned || r.assembly.Shards.Ranks() > 1 {
		return executors, fmt.Errorf("new schedules need one rank, and at most %d sets of PUs", maxReplanned)
	}
	service, err := r.serviceOf(prefill, decode)
	if err != nil {
		return executors, err
	}
	plan, err := r.replanner(&service)
	if err != nil {
		return executors, err
	}
	if !slices.Equal(plan.Weights, r.Plan.Weights) {
		return executors, fmt.Errorf("new schedules would change the arithmetic of weights")
	}
	for i, p := range []*plans.Phase{&plan.Prefill, &plan.Decode} {
		if executors[i], err = r.assembly.Compile(p, r.assembly.Workers); err != nil {
			closeAll(executors)
			return executors, err
		}
	}
	r.replans = append(r.replans, replanned{slices.Clone(prefill), slices.Clone(decode), executors})
	return executors, nil
}

// serviceOf returns the plan's service configuration without the PUs of workers that do not run.
func (r *Runner) serviceOf(prefill, decode []int) (plans.ServiceConfig, error) {
	pus := r.Pool().PUs()
	on := func(workers []int) (set topotree.CPUSet) {
		for _, w := range workers {
			set = set.Union(topotree.NewCPUSet(pus[w]))
		}
		return set
	}
	pre, dec := on(prefill), on(decode)
	ranks := slices.Clone(r.Plan.Ranks)
	for i := range ranks {
		ranks[i].PUs = ranks[i].PUs.Intersect(pre.Union(dec))
	}
	return plans.NewService(ranks, pre, dec)
}

// UseTeams makes the following forwards run on the given teams. It must not be called during a
// forward.
func (r *Runner) UseTeams(teams [2]Team) {
	for i := range r.phases {
		if teams[i].Executor != nil {
			r.phases[i].active, r.phases[i].executor = teams[i].Workers, teams[i].Executor
		}
	}
}

// Replans returns the number of pairs of teams for which schedules were compiled.
func (r *Runner) Replans() int { return len(r.replans) }

// OnPlan reports whether forwards of a phase run under the schedules of the plan.
func (r *Runner) OnPlan(p phase.Phase) bool { return r.phases[p].executor == r.phases[p].planned }

// closeAll closes the executors that are not nil.
func closeAll(executors [2]*exec.Executor) {
	for _, e := range executors {
		if e != nil {
			e.Close()
		}
	}
}
