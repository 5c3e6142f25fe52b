package load

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/sched"
	"sandwich/tuner/measure/load"
	"sandwich/tuner/replay"
)

func newGoodput() *cobra.Command {
	var f loadFlags
	c := &cobra.Command{
		Use:   "goodput RUNS",
		Short: "Find the highest rate at which requests meet the service level",
		Long: `Find, by bisection in RUNS runs, the highest rate of arrivals at which 90 % of the reactive requests meet the service
level. The rates of both classes vary by the same factor, from 0.1 to 10.`,
		Example: "  sandwich bench load goodput 6 --slo-ttft 1s --slo-tpot 100ms",
		Args:    flags.ExactArgs(1, "a number of runs, such as 6"),
	}
	f.addEngine(c)
	f.addServer(c.Flags())
	f.addArrivals(c.Flags())
	f.addSLO(c.Flags())
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, args []string) error {
		n, err := strconv.Atoi(args[0])
		if err != nil || n < 1 || n > 20 {
			return exit.Usage(fmt.Errorf("%s is not a number of runs; give one from 1 to 20", show.Clip(args[0], 40)))
		}
		f.goodput = n
		return f.offer(c.Context(), c.OutOrStdout(), *format)
	}
	return c
}

// bisect finds the largest factor of the arrival rate at which 90 % of the reactive requests meet
// the service level. It returns the rate of all requests per minute, or 0 if no measured factor
// does. A factor at which no reactive request arrives is not measured: it is too small.
func (f *loadFlags) bisect(ctx context.Context, target load.Target) (float64, error) {
	lo, hi, met := 0.1, 10.0, 0.0
	for range f.goodput {
		mid := 2 * lo * hi / (lo + hi) // the harmonic mean, which favors the lower rates
		t, err := f.random(mid)
		if err != nil {
			return 0, err
		}
		if !slices.ContainsFunc(t, func(r replay.Request) bool { return r.Class == sched.Reactive }) {
			lo = mid
			continue
		}
		run, err := load.Offer(ctx, t, f.seed, target)
		if err != nil {
			return 0, err
		}
		if run.Report.Of(sched.Reactive).Attainment(f.slo) >= 0.9 {
			lo, met = mid, mid
		} else {
			hi = mid
		}
	}
	return met * (f.rates[0] + f.rates[1]), nil
}
