package modelflags

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/runtime/sched"
	"sandwich/runtime/session"
)

// Service holds the sizes of an engine and its scheduler as flags.
type Service struct{ session.Sizes }

// AddService adds the scheduling flags.
func (v *Service) AddService(fs *pflag.FlagSet) {
	fs.StringVar(&v.Policy, "policy", sched.DefaultPolicy, "scheduling policy: "+strings.Join(sched.Policies(), ", "))
	v.AddShares(fs)
}

// AddShares adds the scheduling flags except --policy.
func (v *Service) AddShares(fs *pflag.FlagSet) {
	fs.Float64Var(&v.Quantum, "quantum", sched.DefaultQuantum,
		"time of proactive prefill after each reactive decode step, as a share of the step")
	flags.Duration(fs, &v.Bound, "op-bound", sched.DefaultBound,
		"maximum predicted time of an op of a proactive prefill; longer ops are split")
	flags.Duration(fs, &v.TPOT, "tpot", 0, "objective of the time per output token, which limits decode batches of "+
		"both classes (default: --mixed-cap limits them)")
	fs.IntVar(&v.MixedCap, "mixed-cap", sched.DefaultMixedCap,
		"maximum number of rows of a decode batch of both classes, without --tpot")
	flags.Duration(fs, &v.Aging, "aging", sched.DefaultAging,
		"time without progress after which a proactive request is guaranteed quanta and a row of the decode batch")
}

func (v *Service) CheckService() error {
	switch {
	case !slices.Contains(sched.Policies(), v.Policy):
		return flags.Unknown("policy", v.Policy, sched.Policies()...)
	case !(v.Quantum > 0 && v.Quantum <= 100):
		return fmt.Errorf("--quantum %g is not above 0 and at most 100; use a share such as %g", v.Quantum,
			sched.DefaultQuantum)
	case v.Bound <= 0:
		return fmt.Errorf("--op-bound %s is not above 0; give a duration such as %s", v.Bound, sched.DefaultBound)
	case v.Aging <= 0:
		return fmt.Errorf("--aging %s is not above 0; give a duration such as %s", v.Aging, sched.DefaultAging)
	case v.TPOT < 0:
		return fmt.Errorf("--tpot %s is negative; give a duration above 0, such as 50ms", v.TPOT)
	case v.MixedCap < 1 || v.MixedCap > MaxParallel:
		return fmt.Errorf("--mixed-cap %d is out of range; give a number from 1 to %d", v.MixedCap, MaxParallel)
	}
	return nil
}

// Sched returns the configuration of the scheduler, without blocks and chunks.
func (v *Service) Sched() sched.Config {
	return sched.Config{MaxRunning: v.Parallel, Queue: v.Queue, Policy: v.Policy, MixedCap: v.MixedCap, Aging: v.Aging,
		Quantum: v.Quantum, Bound: v.Bound, TPOT: v.TPOT}
}
