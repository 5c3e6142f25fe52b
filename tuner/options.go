package tuner

import (
	"errors"
	"fmt"
	"time"

	"sandwich/tuner/finals"
	"sandwich/tuner/partition"
	"sandwich/tuner/ranking"
	"sandwich/tuner/replay"
	"sandwich/tuner/run"
	"sandwich/tuner/search"
	"sandwich/tuner/tables"
	"sandwich/tuner/trials"
)

// Options configure Tune, by stage. The profile and the model of Subject are required; other fields
// have defaults.
type Options struct {
	Name    string            // of the plan; "": the model's
	Origin  string            // the file, preset or config.json, for the evidence
	Subject partition.Subject // the machine, the model and the requested plan
	Ranking RankingOptions
	Search  tables.Options
	Race    RaceOptions
	Run     run.Options
}

// RankingOptions configure the ranking of service configurations by prediction.
type RankingOptions struct {
	Load      ranking.Load // load that ranks configurations; empty: a few requests of replay.Usual
	Objective string       // "": latency
	SLO       replay.SLO
	TopK      int // sets of PUs per phase to measure; 0: 10
}

// RaceOptions configure the race of the finalists.
type RaceOptions struct {
	AllowTP bool                // accept several ranks for any gain, not only from 10 % on
	Device  finals.Device       // that may run phases; zero: none
	Rerun   int                 // rounds that rerun all arms with the plan, past the budget; 0: none
	Reran   func(*finals.Rerun) // receives the result of the rerun
	// EverySet adds the plan's tables on every other set of its PUs to the rerun.
	EverySet bool
}

// DefaultBudget is the budget when Options has none.
const DefaultBudget = 10 * time.Minute

// complete sets defaults and rejects options that cannot be tuned.
func (o *Options) complete() error {
	plan := o.Subject.Plan
	switch {
	case o.Subject.Profile == nil:
		return errors.New("tune needs a host profile")
	case o.Subject.File == nil && o.Subject.Config == nil:
		return errors.New("tune needs a model: a GGUF file, a config.json or a preset")
	case o.Run.Budget < 0:
		return fmt.Errorf("the budget %s is too small; use at least a few seconds", o.Run.Budget)
	case plan.TP < 0:
		return fmt.Errorf("%d ranks: must not be negative; use 0 to choose the number", plan.TP)
	case plan.SeqMax < 0 || plan.BatchMax < 0 || o.Ranking.TopK < 0:
		return fmt.Errorf("seq-max %d, batch-max %d and top-k %d must not be negative", plan.SeqMax, plan.BatchMax,
			o.Ranking.TopK)
	}
	if o.Run.Budget == 0 {
		o.Run.Budget = DefaultBudget
	}
	if o.Ranking.TopK == 0 {
		o.Ranking.TopK = 10
	}
	if o.Search.Effort == "" {
		o.Search.Effort = effortFor(o.Run.Budget)
	}
	if o.Search.Strategy == "" {
		o.Search.Strategy = search.Strategies()[0]
	}
	if search.About(o.Search.Strategy) == "" {
		return fmt.Errorf("unknown search strategy %q; choose one of %v", o.Search.Strategy, search.Strategies())
	}
	if _, err := search.ParseEffort(o.Search.Effort); err != nil {
		return err
	}
	return o.Subject.CheckHost()
}

// effortFor returns the effort that fits a budget.
func effortFor(budget time.Duration) string {
	switch {
	case budget < 3*time.Minute:
		return search.Quick.Name
	case budget < 30*time.Minute:
		return search.Standard.Name
	}
	return search.Full.Name
}

// flags returns every option that affects the measurements.
func (o *Options) flags() string {
	p, l := o.Subject.Plan, o.Ranking.Load
	text := trials.Flags{Threads: p.Threads, TP: p.TP, ISA: p.ISA, Compute: p.Compute, KV: p.KV, Attention: p.Attend,
		SeqMax: p.SeqMax, BatchMax: p.BatchMax, Budget: o.Run.Budget, Effort: o.Search.Effort,
		Strategy: o.Search.Strategy, TopK: o.Ranking.TopK, AllowTP: o.Race.AllowTP, Load: l.Name + l.Workload.Name,
		Objective: o.Ranking.Objective}.String()
	if o.Race.Device.ID != "" {
		text += " device=" + o.Race.Device.ID
	}
	return text
}
