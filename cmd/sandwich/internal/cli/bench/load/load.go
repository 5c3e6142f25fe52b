// Package load has the verbs of bench load: requests of two classes are offered to an engine or a
// server, and the times that each class sees are measured or simulated.
package load

import (
	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/flags"
)

// New returns the verb bench load with its subcommands.
func New() *cobra.Command {
	var f loadFlags
	c := &cobra.Command{
		Use:   "load",
		Short: "Offer requests of two classes and measure their latencies",
		Long: `Offer reactive and proactive requests at random times, or recorded ones, and measure the time to first token (TTFT), the
time per output token (TPOT) and the latency by class. The target is the engine in this process under each policy of
--policy, or any server with OpenAI's /v1/completions (--url).

` + setsText() + `
Times are printed in milliseconds, in JSON and CSV in seconds.

` + filesText,
		Example: `  sandwich bench load --reactive 12 --proactive 24 --duration 2m --svg load.svg
  sandwich bench load --policy sandwich,fcfs,preempt,share --record arrivals.jsonl
  sandwich bench load --url http://127.0.0.1:8080 --reactive 6 --proactive 12
  sandwich bench load simulate --replay arrivals.jsonl --policy sandwich,fcfs
  sandwich bench load goodput --slo-ttft 1s --slo-tpot 100ms
  sandwich bench load goal open backlog --seeds 3`,
		Args: flags.ExactArgs(0, ""),
	}
	f.addEngine(c)
	fs := c.Flags()
	f.addServer(fs)
	f.addArrivals(fs)
	f.addSLO(fs)
	f.addFiles(fs)
	fs.StringVar(&f.svg, "svg", "", "SVG file to write the last run to")
	format := flags.Format(c, "table", "json", "csv")
	c.AddCommand(newSimulate(), newSweep(), newGoodput(), newGoal(), newDevices(), newLanes(), newAblation(),
		newHalts())
	c.RunE = func(c *cobra.Command, _ []string) error {
		return f.offer(c.Context(), c.OutOrStdout(), *format)
	}
	return c
}
