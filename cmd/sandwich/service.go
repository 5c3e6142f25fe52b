package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/sched"
	"sandwich/runtime/session"
)

// serving holds the sizes of an engine as flags.
type serving struct{ session.Sizes }

// addService gives a verb the flags of how requests of two classes are served.
func (v *serving) addService(fs *pflag.FlagSet) {
	fs.StringVar(&v.Policy, "policy", sched.DefaultPolicy, "who runs next: "+strings.Join(sched.Policies(), ", "))
	v.addShares(fs)
}

// addShares adds all of them but --policy.
func (v *serving) addShares(fs *pflag.FlagSet) {
	fs.Float64Var(&v.Quantum, "quantum", sched.DefaultQuantum,
		"share of a reactive decode step that proactive prefill gets after each")
	durationFlag(fs, &v.Bound, "op-bound", sched.DefaultBound,
		"ops of a proactive prefill that are predicted to last longer are cut")
	durationFlag(fs, &v.TPOT, "tpot", 0, "objective of the time per token, by which decode batches of both classes "+
		"are bounded (default: --mixed-cap bounds them)")
	fs.IntVar(&v.MixedCap, "mixed-cap", sched.DefaultMixedCap,
		"rows of a decode batch of both classes, where --tpot says nothing")
	durationFlag(fs, &v.Aging, "aging", sched.DefaultAging,
		"a proactive request without progress for this long gets quanta and a place in the decode batch for certain")
}

func (v *serving) checkService() error {
	switch {
	case !slices.Contains(sched.Policies(), v.Policy):
		return fmt.Errorf("--policy %s: choose one of %s", show.Clip(v.Policy, 20), strings.Join(sched.Policies(),
			", "))
	case !(v.Quantum > 0 && v.Quantum <= 100):
		return fmt.Errorf("--quantum %g is not above 0 and at most 100; use a share such as %g", v.Quantum,
			sched.DefaultQuantum)
	case v.Bound <= 0 || v.Aging <= 0:
		return fmt.Errorf("--op-bound and --aging need a duration above 0, such as %s and %s", sched.DefaultBound,
			sched.DefaultAging)
	case v.TPOT < 0:
		return fmt.Errorf("--tpot %s: give a duration above 0, such as 50ms", v.TPOT)
	case v.MixedCap < 1 || v.MixedCap > maxParallel:
		return fmt.Errorf("--mixed-cap %d: give a number from 1 to %d", v.MixedCap, maxParallel)
	}
	return nil
}

// sched returns the configuration of the scheduler, without blocks and chunks.
func (v *serving) sched() sched.Config {
	return sched.Config{MaxRunning: v.Parallel, Queue: v.Queue, Policy: v.Policy, MixedCap: v.MixedCap, Aging: v.Aging,
		Quantum: v.Quantum, Bound: v.Bound, TPOT: v.TPOT}
}
