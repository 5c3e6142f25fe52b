package main

import (
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/cobra"

	"sandwich/tuner"
)

func newBenchHeuristic() *cobra.Command {
	c := &cobra.Command{
		Use:   "heuristic DIR...",
		Short: "Judge the default heuristic on recorded machines",
		Long: `Print what an untuned plan would run on recorded machines, and what share of the speed of the best schedule of
their grids it reaches. Each folder holds host.yaml, of probe --measure full, and journals of bench search (.jsonl, or
packed as .jsonl.gz). Nothing is timed here, and the rules see a machine through its profile alone.

The best is the fastest schedule that the search timed again; a choice was timed "again" or "once", where luck weighs
more. One that was timed many times "interleaved" with the last few of the search is held against these. Schedules that run alike on so many rows and columns are one. A search tries most schedules on a part of the
columns; a choice, made for all of them, is judged there only where it was not timed on all, against what was timed there
again. One that was timed "elsewhere", on another part, is held against the fastest there, which is biased upward. A choice that was not timed is judged by the
"near"est schedule of the same kernel where that is at most one doubling of one size of its slice away, and the last
line says by how much times of such schedules differ in these grids; else it is a miss.`,
		Example: `  sandwich bench search --record here --budget-per-m 5s
  sandwich bench heuristic here
  sandwich bench heuristic machines/zen5-2c
  sandwich bench heuristic machines/* --format csv`,
		Args: someArgs("a folder with host.yaml and grids"),
	}
	format := formatFlag(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, dirs []string) error {
		var rows []tuner.HeuristicRow
		for _, dir := range dirs {
			more, err := tuner.JudgeHeuristic(dir)
			if err != nil {
				return usageError(err)
			}
			rows = append(rows, more...)
		}
		if err := heuristicReport.after(c, *format)(rows, nil); err != nil || *format != "table" {
			return err
		}
		_, err := fmt.Fprintf(c.OutOrStdout(), "\n%s\n", heuristicSummary(rows))
		return err
	}
	return c
}

// heuristicSummary returns the geometric mean and the minimum of the shares, the number of choices
// judged by a similar schedule, and the number of choices missing from their grids.
func heuristicSummary(rows []tuner.HeuristicRow) string {
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
		text = fmt.Sprintf("%d choices are judged by a similar schedule, whose times differ by "+
			"%.1f %% at the most in the "+
			"median; %s", near, 100*scatter, text)
	}
	return fmt.Sprintf("geometric mean %.3f of the best of each grid, worst %.3f; %s", math.Exp(logs/float64(n)), worst,
		text)
}

var heuristicReport = report[tuner.HeuristicRow]{
	columns: []string{"machine", "weight", "compute", "M", "choice", "share", "timed", "best of the grid"},
	numbers: []int{3, 5},
	cells: func(r *tuner.HeuristicRow) []string {
		share, runs := fmt.Sprintf("%.3f", r.Share), r.Runs
		if r.Share == 0 {
			share, runs = "", "missing"
		}
		return []string{r.Machine, r.Weight, r.Compute, strconv.Itoa(r.M), r.Choice, share, runs, r.Best}
	},
	header: "machine,weight,compute,threads,m,columns,choice,share,timed,near,scatter,best,schedules",
	line: func(r *tuner.HeuristicRow) string {
		return fmt.Sprintf("%s,%s,%s,%d,%d,%d,%s,%.4f,%s,%s,%.4f,%s,%d", r.Machine, r.Weight, r.Compute, r.Threads, r.M,
			r.Columns,
			r.Choice, r.Share, r.Runs, r.Near, r.Scatter, r.Best, r.Timed)
	},
}
