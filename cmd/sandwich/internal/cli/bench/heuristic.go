package bench

import (
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/tuner/compare"
)

func newBenchHeuristic() *cobra.Command {
	c := &cobra.Command{
		Use:   "heuristic DIR...",
		Short: "Judge the default heuristic on recorded machines",
		Long: `Compare the default plan with the search results of recorded machines: print what the default plan runs for each weight
and M, and its share of the speed of the best schedule. Each folder holds host.yaml, as probe --measure full writes it,
and journals of bench search (.jsonl or .jsonl.gz). Nothing is timed. The heuristic sees only the profile of a machine.

The best schedule is the fastest that the search timed repeatedly. The column "timed" says how the choice of the
heuristic is judged:

  again        by repeated timings
  once         by one timing, which is noisier
  interleaved  by timings interleaved with the last schedules of the search, and compared with these
  elsewhere    on a different part of the columns, compared with the fastest schedule there, which is biased upward
  near         by the most similar schedule of the same kernel, if one size of the slice differs by at most a factor of 2
  missing      not at all: the grid has no such schedule

Schedules that run identically on that many rows and columns count as one. The search times most schedules on a part of
the columns; a choice for all columns is judged on such a part only if it was not timed on all. The last line says by how
much the times of schedules judged as "near" differ in these grids.`,
		Example: `  sandwich bench search --record here --budget-per-m 5s
  sandwich bench heuristic here
  sandwich bench heuristic machines/zen5-2c
  sandwich bench heuristic machines/* --format csv`,
		Args: flags.SomeArgs("a folder with host.yaml and grids"),
	}
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, dirs []string) error {
		var rows []compare.HeuristicRow
		for _, dir := range dirs {
			more, err := compare.JudgeHeuristic(dir)
			if err != nil {
				return exit.Usage(err)
			}
			rows = append(rows, more...)
		}
		if err := heuristicReport.After(c, *format)(rows, nil); err != nil || *format != "table" {
			return err
		}
		_, err := fmt.Fprintf(c.OutOrStdout(), "\n%s\n", heuristicSummary(rows))
		return err
	}
	return c
}

// heuristicSummary returns the geometric mean and the minimum of the shares, the number of choices
// judged by a similar schedule, and the number of choices missing from their grids.
func heuristicSummary(rows []compare.HeuristicRow) string {
	logs, n, worst, near, scatter := 0.0, 0, math.Inf(1), 0, 0.0
	for i := range rows {
		if rows[i].Share == 0 {
			continue
		}
		logs, n = logs+math.Log(rows[i].Share), n+1
		worst = min(worst, rows[i].Share)
		if rows[i].Near != "" {
			near, scatter = near+1, max(scatter, rows[i].Scatter)
		}
	}
	text := fmt.Sprintf("%d of %d choices are missing from their grids", len(rows)-n, len(rows))
	if n == 0 {
		return text
	}
	if near > 0 {
		text = fmt.Sprintf("%d choices are judged by a similar schedule, whose median times differ by "+
			"up to %.1f %%; %s", near, 100*scatter, text)
	}
	return fmt.Sprintf("geometric mean %.3f of the best of each grid, worst %.3f; %s", math.Exp(logs/float64(n)), worst,
		text)
}

var heuristicReport = show.Report[compare.HeuristicRow]{
	Columns: []string{"machine", "weight", "compute", "M", "choice", "share", "timed", "best of the grid"},
	Numbers: []int{3, 5},
	Cells: func(r *compare.HeuristicRow) []string {
		share, runs := fmt.Sprintf("%.3f", r.Share), r.Runs
		if r.Share == 0 {
			share, runs = "", "missing"
		}
		return []string{r.Machine, r.Weight, r.Compute, strconv.Itoa(r.M), r.Choice, share, runs, r.Best}
	},
	Header: "machine,weight,compute,threads,m,columns,choice,share,timed,near,scatter,best,schedules",
	Line: func(r *compare.HeuristicRow) string {
		return fmt.Sprintf("%s,%s,%s,%d,%d,%d,%s,%.4f,%s,%s,%.4f,%s,%d", show.CSVCell(r.Machine), r.Weight, r.Compute,
			r.Threads, r.M, r.Columns, r.Choice, r.Share, r.Runs, r.Near, r.Scatter, r.Best, r.Timed)
	},
}
