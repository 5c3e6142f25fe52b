package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/modelref"
	"sandwich/cmd/sandwich/internal/cli/tune"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/mem"
	"sandwich/runtime/session"
	"sandwich/tuner/ranking"
	"sandwich/tuner/replay"
)

func newBenchRanking() *cobra.Command {
	var simulation tune.Simulation
	c := &cobra.Command{
		Use:   "ranking",
		Short: "Time the ranking of all service configurations on machines of growing size",
		Long: `Rank all service configurations, as tune --simulate does, on machines of growing size that are built like
` + ranking.GrowthMachine + `. Print the numbers of trees, sections and configurations of each, and the time and memory of the ranking.`,
		Example: `  sandwich bench ranking
  sandwich bench ranking --pus 48,1024 --model llama-3.1-8b --type q4_K_M --format json`,
		Args: flags.ExactArgs(0, ""),
	}
	fs := c.Flags()
	var model string
	modelref.Flag(c, &model, "model", "m", "llama-3.1-8b", "GGUF file, pulled model, config.json or preset")
	typ := fs.String("type", "f32", "tensor type of the matrices of a preset")
	sizes := fs.IntSlice("pus", []int{48, 96, 192, 384, 768, 1024}, "machine sizes in PUs, multiples of 48 or 64")
	fs.StringVar(&simulation.Trace, "trace", replay.Usual, "requests to rank for, as for tune --simulate")
	fs.IntVar(&simulation.Requests, "requests", 90, "number of requests of a built-in trace")
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error {
		simulation.Objective, simulation.Ttft, simulation.Tpot = replay.Latency, replay.DefaultSLO.TTFT,
			replay.DefaultSLO.TPOT
		if simulation.Trace == "" {
			return exit.Usage(errors.New("--trace is empty; leave it out for " + replay.Usual))
		}
		if err := simulation.CheckLoad(); err != nil {
			return exit.Usage(err)
		}
		for _, pus := range *sizes {
			if err := ranking.CheckSize(pus); err != nil {
				return exit.Usage(fmt.Errorf("--pus %d: %w", pus, err))
			}
		}
		return rankingReport.After(c, *format)(growth(c.Context(), model, *typ, &simulation, *sizes))
	}
	return c
}

// growth ranks the configurations of machines of each size for a model.
func growth(ctx context.Context, model, typ string, f *tune.Simulation, sizes []int) (rows []ranking.GrowthRow,
	err error) {
	subject, err := session.OpenSubject(model, typ)
	if err != nil {
		return nil, exit.Usage(err)
	}
	defer subject.Close()
	load, err := f.Load(1)
	if err != nil {
		return nil, exit.Usage(err)
	}
	ops, err := subject.Ops()
	if err != nil {
		return nil, exit.Usage(err)
	}
	step, done := show.StepBar("ranking", len(sizes))
	defer done()
	o := ranking.Options{Shape: subject.Shape, Model: ops, Load: load}
	err = ranking.Growth(ctx, o, sizes, func(r ranking.GrowthRow) {
		rows = append(rows, r)
		step()
	})
	return rows, exit.Usage(err)
}

var rankingReport = show.Report[ranking.GrowthRow]{
	Columns: []string{"PUs", "nodes", "trees", "sections", "configurations", "distinct costs",
		"simulated", "time", "heap"},
	Numbers: []int{0, 1, 2, 3, 4, 5, 6, 7, 8},
	Cells: func(r *ranking.GrowthRow) []string {
		more := ""
		if r.Truncated {
			more = " of more"
		}
		return []string{strconv.Itoa(r.PUs), strconv.Itoa(r.Nodes), strconv.Itoa(r.Trees) + more,
			strconv.Itoa(r.Sections), strconv.Itoa(r.Configurations), strconv.Itoa(r.DistinctCosts),
			strconv.Itoa(r.Simulated), fmt.Sprintf("%.1f s", r.Seconds), mem.FormatBytes(int64(r.Bytes))}
	},
	Header: "pus,nodes,trees,truncated,sections,configurations,distinct_costs,simulated,seconds,heap_bytes",
	Line: func(r *ranking.GrowthRow) string {
		return fmt.Sprintf("%d,%d,%d,%v,%d,%d,%d,%d,%.3f,%d", r.PUs, r.Nodes, r.Trees, r.Truncated, r.Sections,
			r.Configurations, r.DistinctCosts, r.Simulated, r.Seconds, r.Bytes)
	},
}
