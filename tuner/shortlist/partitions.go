// Package shortlist chooses by whole forwards, under the untuned default plans, for which
// partitions and for which sets of active PUs kernel tables are searched. Its input is a ranking,
// its output partitions and sets, best first.
package shortlist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"sandwich/plans"
	"sandwich/plans/evidence"
	"sandwich/runtime/phase"
	"sandwich/tuner/arms"
	"sandwich/tuner/partition"
	"sandwich/tuner/ranking"
	"sandwich/tuner/rig"
	"sandwich/tuner/run"
	"sandwich/tuner/search"
)

// Input is what the shortlist is made from.
type Input struct {
	Run     *run.Run
	Loader  *partition.Loader
	Ranking *ranking.Ranking
	TopK    int // sets of PUs per phase to measure
	Effort  search.Effort
	AllowTP bool // accept several ranks for any gain
}

// hopefulRanks is the largest fraction of the time of one rank that several ranks may take before
// their tables are searched.
const hopefulRanks = 1.1

// ranksLimit is the part of the budget that the first rounds of all partitions may take.
const ranksLimit = 0.15

// Partitions opens the default plan's partition and races partitions into other numbers of ranks
// with it, each on the PUs that the ranking chose, under untuned schedules. It returns the default
// plan's partition, then those that are not clearly slower and should be tuned, and the samples of
// all. If the model cannot run, it returns only the first.
func Partitions(ctx context.Context, in Input) (list []*partition.Partition, samples []evidence.Arm, err error) {
	home, user := in.Loader.Home(), in.Loader.Home().Subject.Plan
	list = []*partition.Partition{home}
	if err := in.Loader.Open(ctx, home); err != nil || home.Rig == nil || user.TP > 0 || user.Threads > 0 {
		return list, nil, err
	}
	candidates := in.Ranking.SeveralRanks(in.TopK)
	if len(candidates) == 0 {
		return list, nil, nil
	}
	r := arms.New(in.Run, in.Loader, "ranks", ranksLimit)
	def := [phase.Count]*plans.Phase{&home.Plan.Prefill, &home.Plan.Decode}
	r.Add(evidence.ArmDefault, home, def, false, true)
	r.Add(evidence.ArmUnpinned, home, def, true, true)
	for _, c := range candidates {
		s, err := c.Config.Service()
		if err != nil {
			return nil, nil, err
		}
		p, err := in.Loader.Partition(&s)
		if err != nil {
			return nil, nil, err
		}
		r.Add(c.Names[0], p, [phase.Count]*plans.Phase{&p.Plan.Prefill, &p.Plan.Decode}, false, false)
	}
	err = r.AddTests(ctx, true, run.RanksEnd, phase.Prefill, phase.Decode)
	r.Tests = slices.DeleteFunc(r.Tests, func(x rig.Test) bool { return x.Phase == phase.Decode && x.N > 1 })
	if err == nil {
		err = r.Measure(ctx, run.RanksEnd, len(candidates))
	}
	if err != nil && !errors.Is(err, arms.ErrUndecided) {
		return nil, nil, err
	}
	for _, a := range r.Arms {
		for _, ph := range phase.All {
			if len(a.Laps) > 0 {
				samples = append(samples, r.Evidence(a, ph, "ranks, "+a.Name)...)
			}
		}
	}
	return append(list, in.hopeful(r)...), samples, nil
}

// hopeful returns the partitions of a race that get their own tables, best first. It records why
// the others do not.
func (in *Input) hopeful(r *arms.Race) (out []*partition.Partition) {
	took := func(a *arms.Arm) float64 { return 1 / (1 + a.GainOver(&r.Arms[0].Standing).Median) }
	list := slices.Clone(r.Arms[2:])
	slices.SortStableFunc(list, func(a, b *arms.Arm) int { return cmp.Compare(took(a), took(b)) })
	limit := map[string]int{search.Quick.Name: 1, search.Standard.Name: 2, search.Full.Name: 4}[in.Effort.Name]
	for _, a := range list {
		rounds := a.GainOver(&r.Arms[0].Standing).Rounds
		measured := fmt.Sprintf("takes %.2f times as long as one rank with the default schedules, in %d rounds",
			took(a), rounds)
		switch {
		case a.On.Failed != nil && rounds == 0:
			in.Run.Reject(a.Name, a.On.Failed.Error())
		case a.On.Failed == nil && rounds < arms.MinRounds:
			in.Run.Reject(a.Name, fmt.Sprintf("measured in %d rounds: the budget has no time for more; give a larger "+
				"--budget, or --tp", rounds))
		case a.Lost != "":
			in.Run.Reject(a.Name, measured+"; "+a.Lost)
		case took(a) > hopefulRanks:
			in.Run.Reject(a.Name, fmt.Sprintf("%s; several ranks change the bits and must take less than %.2f in the "+
				"end (--allow tp takes any gain)", measured, arms.Worth(in.AllowTP)))
		case len(out) == limit:
			in.Run.Reject(a.Name, fmt.Sprintf("%s; with effort %s tables are searched for at most %d such partitions",
				measured, in.Effort.Name, limit))
		default:
			out = append(out, a.On)
		}
	}
	return out
}
