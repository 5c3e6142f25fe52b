package ranking

import (
	"fmt"
	"slices"
	"strings"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/tuner/candidates"
	"sandwich/tuner/replay"
)

// Options configure Simulate. Profile and Shape are required; other fields have defaults.
type Options struct {
	Profile *profiles.Profile // of any machine
	Shape   plans.ModelShape
	Model   *model.Model // from its file or configuration; nil if only the shape is known
	Compute string       // Compute, KV and ISA as in heuristic.Options
	KV      string
	ISA     string
	TP      int // only this number of ranks; 0: all
	Threads int // maximum number of PUs in a phase

	Load      Load
	Objective string // one of replay.Objectives; "": latency
	SLO       replay.SLO
	Anchors   *Calibration // of this machine; nil: use assumed fractions of the ceilings
	Parallel  int          // sequences that run at the same time; 0: 8
	TopK      int          // candidates to show; 0: 10

	Progress func(replayed, of int) // called before each replay; may be nil
}

func (o *Options) complete() error {
	if o.Objective == "" {
		o.Objective = replay.Latency
	}
	if !slices.Contains(replay.Objectives(), o.Objective) {
		return fmt.Errorf("unknown objective %q; choose one of %s", o.Objective,
			strings.Join(replay.Objectives(), ", "))
	}
	if o.SLO == (replay.SLO{}) {
		o.SLO = replay.DefaultSLO
	}
	if o.Parallel == 0 {
		o.Parallel = 8
	}
	return o.Load.complete(o.Shape.Pooled())
}

// blocks returns the number of blocks of the KV cache: those of the longest request, for each
// request that may run.
func (o *Options) blocks() int { return o.Parallel * kvcache.BlocksFor(o.Load.longest()) }

// untuned returns what predictions of all configurations of a machine share: the untuned plan, the
// profile completed with assumed figures, and a sentence for each of these.
func (o *Options) untuned() (plan *plans.Plan, profile *profiles.Profile, assumed []string, err error) {
	plan, err = heuristic.Default(o.Profile, o.Shape, heuristic.Options{Compute: o.Compute, KV: o.KV, ISA: o.ISA})
	if err != nil {
		return nil, nil, nil, err
	}
	profile, assumed = candidates.Complete(o.Profile, plan.Widest(), plan.Arithmetics())
	return plan, profile, assumed, nil
}
