package main

import (
	"fmt"
	"io"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/tuner/measure"
)

// printNeighbours prints what a neighbour cost the tests, where there was one.
func printNeighbours(w io.Writer, rows []measure.LLMRow) error {
	var table [][]string
	for _, r := range rows {
		n := r.Neighbour
		if n == nil {
			continue
		}
		verdict := "missed"
		if n.Share >= n.Goal {
			verdict = "met"
		}
		table = append(table, []string{testLabel(&r), fmt.Sprint(r.Threads), r.Plan, fmt.Sprint(n.PU),
			fmt.Sprintf("%.0f %%", 100*n.Taken), fmt.Sprintf("%.2f", n.Rate),
			fmt.Sprintf("%.2f", n.Min), fmt.Sprintf("%.2f", n.Max), fmt.Sprintf("%.2f", n.FairShare),
			fmt.Sprintf("%.0f %%", 100*n.Share),
			fmt.Sprintf("%.0f %% (%s)", 100*n.Goal, verdict)})
	}
	if table == nil {
		return nil
	}
	fmt.Fprintln(w, "\nbeside a neighbour:")
	return show.Table(w, []string{"test", "threads", "plan", "its PU", "took", "tokens/s", "min", "max", "fair share",
		"of it", "goal"}, table, 1, 3, 4, 5, 6, 7, 8, 9)
}
