package llm

import (
	"fmt"
	"io"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/tuner/measure/llm"
)

// printNeighbors prints how a noisy neighbor changed the results of the tests that ran with one.
func printNeighbors(w io.Writer, rows []llm.Row) error {
	var table [][]string
	for _, r := range rows {
		n := r.Neighbor
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
			fmt.Sprintf("%.0f %% (%s)", 100*n.Goal, verdict), fmt.Sprint(n.Lost.LeftOut), fmt.Sprint(n.Lost.Apart),
			fmt.Sprint(n.Lost.Again)})
	}
	if table == nil {
		return nil
	}
	fmt.Fprintln(w, "\nwith a noisy neighbor:")
	return show.Table(w, []string{"test", "threads", "plan", "its PU", "took", "tokens/s", "min", "max", "fair share",
		"of it", "goal", "skipped", "private", "again"}, table, 1, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13)
}

// printLost prints how often workers lost their CPUs to processes other than the configured
// neighbor, and how the engine reacted. It prints nothing if that did not happen.
func printLost(w io.Writer, rows []llm.Row) error {
	var all llm.LostRow
	for i := range rows {
		r := &rows[i].Lost
		all.Apart, all.Again, all.LeftOut = all.Apart+r.Apart, all.Again+r.Again, all.LeftOut+r.LeftOut
	}
	if all == (llm.LostRow{}) {
		return nil
	}
	_, err := fmt.Fprintf(w,
		"\nanother process used these PUs: workers were skipped %d times, %d chunks were computed "+
			"in private buffers and %d again\n", all.LeftOut, all.Apart, all.Again)
	return err
}
