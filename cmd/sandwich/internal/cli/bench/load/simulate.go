package load

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/tuner/measure/load"
)

func newSimulate() *cobra.Command {
	f := loadFlags{simulate: true}
	c := &cobra.Command{
		Use:   "simulate",
		Short: "Measure and simulate the same arrivals, and print the error of the simulation",
		Long: `Offer the arrivals to the engine in real time and measure, then run the same arrivals through the same scheduler on a
virtual clock. The simulation computes nothing: a forward takes the time of its ops in the measured run, multiplied by the
slowdown of the machine in that second of the run, since another process that takes the CPUs for seconds fills every queue.
The output has both results and their differences.

` + filesText,
		Example: `  sandwich bench load simulate --replay arrivals.jsonl --policy sandwich,fcfs
  sandwich bench load simulate --replay arrivals.jsonl --format json          # "clock" is "wall" or "virtual"`,
		Args: flags.ExactArgs(0, ""),
	}
	f.addEngine(c)
	f.addArrivals(c.Flags())
	f.addSLO(c.Flags())
	f.addFiles(c.Flags())
	c.Flags().StringVar(&f.svg, "svg", "", "SVG file to write the last measured run to")
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error { return f.offer(c.Context(), c.OutOrStdout(), *format) }
	return c
}

func newSweep() *cobra.Command {
	f := loadFlags{simulate: true}
	kinds := strings.Join(load.Sweeps(), " or ")
	c := &cobra.Command{
		Use:   "sweep KIND",
		Short: "Simulate multiples of the arrival rate or of the service level",
		Long: `Measure and simulate the arrivals as bench load simulate does, then simulate multiples of the arrival rate or
of the service level (KIND: ` + kinds + `). JSON and CSV contain only the results of the sweep.

` + filesText,
		Example: "  sandwich bench load sweep rate --svg sweep.svg",
		Args:    flags.ExactArgs(1, "what to vary: "+kinds),
	}
	f.addEngine(c)
	f.addArrivals(c.Flags())
	f.addSLO(c.Flags())
	f.addFiles(c.Flags())
	c.Flags().StringVar(&f.svg, "svg", "", "SVG file to write the sweep to")
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, args []string) error {
		if f.sweep = args[0]; !slices.Contains(load.Sweeps(), f.sweep) {
			return exit.Usage(fmt.Errorf("sweep %.40q is unknown; give %s", f.sweep, kinds))
		}
		return f.offer(c.Context(), c.OutOrStdout(), *format)
	}
	return c
}
