package engine

import (
	"fmt"
	"slices"

	"sandwich/plans"
	"sandwich/runtime/exec"
)

// team is who runs the forwards of a phase, and under which schedules.
type team struct {
	workers  []int
	executor *exec.Executor
}

// replanned keeps the executors for one pair of teams, so that a cpuset that comes and goes plans
// once.
type replanned struct {
	prefill, decode []int // workers
	executors       [2]*exec.Executor
}

// maxReplanned bounds how many pairs of teams are kept; beyond them, slices made for the plan are
// handed out to whoever is left.
const maxReplanned = 16

// teamsFor gives both phases their teams under what the system leaves, and says in words whether
// they work under schedules made for them. It may be called while a forward runs; the teams are for
// restrict.
func (r *Runner) teamsFor(s standing) (teams [2]team, said string) {
	ranks := r.assembly.Workers.Ranks()
	for i, p := range r.phases {
		teams[i] = team{s.team(p.workers, ranks), p.planned}
	}
	if slices.Equal(teams[0].workers, r.phases[0].workers) && slices.Equal(teams[1].workers, r.phases[1].workers) {
		return teams, ""
	}
	executors, err := r.replan(teams[0].workers, teams[1].workers)
	if err != nil {
		return teams, fmt.Sprintf(" (requests go on under the old schedules: %v)", err)
	}
	teams[0].executor, teams[1].executor = executors[0], executors[1]
	return teams, fmt.Sprintf(" (planned again: prefill on %d, decode on %d workers)", len(teams[0].workers),
		len(teams[1].workers))
}

// replan compiles schedules for teams smaller than the plan's. Layout and arithmetic of the weights
// stay as they are.
func (r *Runner) replan(prefill, decode []int) (executors [2]*exec.Executor, err error) {
	for _, old := range r.again {
		if slices.Equal(old.prefill, prefill) && slices.Equal(old.decode, decode) {
			return old.executors, nil
		}
	}
	// Ranks of fewer PUs would have their weights cut in other places: they keep their schedules.
	if r.replanner == nil || len(r.again) == maxReplanned || r.assembly.Shards.Ranks() > 1 {
		return executors, fmt.Errorf("no others are made")
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
		return executors, fmt.Errorf("others would compute differently")
	}
	for i, p := range []*plans.Phase{&plan.Prefill, &plan.Decode} {
		if executors[i], err = r.assembly.Compile(p, r.assembly.Workers); err != nil {
			closeAll(executors)
			return executors, err
		}
	}
	r.again = append(r.again, replanned{slices.Clone(prefill), slices.Clone(decode), executors})
	return executors, nil
}

// serviceOf is the plan's service configuration without the PUs of workers that do not run.
func (r *Runner) serviceOf(prefill, decode []int) (plans.ServiceConfig, error) {
	pus := r.Pool().PUs()
	on := func(workers []int) (set plans.PUSet) {
		for _, w := range workers {
			set = append(set, pus[w])
		}
		slices.Sort(set)
		return set
	}
	pre, dec := on(prefill), on(decode)
	ranks := slices.Clone(r.Plan.Ranks)
	for i := range ranks {
		ranks[i].PUs = slices.DeleteFunc(slices.Clone(ranks[i].PUs), func(pu int) bool {
			return !slices.Contains(pre, pu) && !slices.Contains(dec, pu)
		})
	}
	return plans.NewService(ranks, pre, dec)
}

// restrict makes the following forwards run on these teams. Not to be called during one.
func (r *Runner) restrict(teams [2]team) {
	for i := range r.phases {
		if teams[i].executor != nil {
			r.phases[i].active, r.phases[i].executor = teams[i].workers, teams[i].executor
		}
	}
}

func closeAll(executors [2]*exec.Executor) {
	for _, e := range executors {
		if e != nil {
			e.Close()
		}
	}
}
