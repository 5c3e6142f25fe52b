package llm

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/tuner/measure/llm"
)

var speedReport = show.Report[llm.Row]{
	Title:   func(r *llm.Row) string { return r.Model + " on " + r.CPU },
	Columns: []string{"test", "threads", "plan", "tokens/s", "min", "max", "ceiling", "of ceiling", "ceiling by"},
	Numbers: []int{1, 3, 4, 5, 6, 7},
	Cells: func(r *llm.Row) []string {
		ceiling, ofCeiling := "", ""
		if r.Ceiling > 0 {
			ceiling = fmt.Sprintf("%.1f", r.Ceiling)
			ofCeiling = cmp.Or(r.Above, fmt.Sprintf("%.0f %%", 100*r.Rate/r.Ceiling))
		}
		return []string{testLabel(r), strconv.Itoa(r.Threads), r.Plan, fmt.Sprintf("%.2f", r.Rate), fmt.Sprintf("%.2f",
			r.Min), fmt.Sprintf("%.2f", r.Max), ceiling, ofCeiling, r.CeilingOf}
	},
	Header: "model,test,threads,batch,plan,tokens_per_second,min,max,ceiling,samples,joules_per_token",
	Line: func(r *llm.Row) string {
		var samples []string
		for _, s := range r.Samples {
			samples = append(samples, fmt.Sprintf("%.3f", s))
		}
		return fmt.Sprintf("%s,%s,%d,%d,%s,%.3f,%.3f,%.3f,%.3f,%s,%s", show.CSVCell(r.Model), r.Test, r.Threads,
			r.Batch, show.CSVCell(r.Plan), r.Rate, r.Min, r.Max, r.Ceiling, strings.Join(samples, ";"), joules(r))
	},
}

func printLLM(w io.Writer, rows []llm.Row, format string) error {
	if len(rows) == 0 && format == "table" {
		_, err := fmt.Fprintln(w, "nothing to measure: -p and -n are both 0")
		return err
	}
	if err := speedReport.Print(w, rows, format); err != nil || format != "table" {
		return err
	}
	if err := printCounters(w, rows); err != nil {
		return err
	}
	if err := printEnergy(w, rows); err != nil {
		return err
	}
	if err := printLost(w, rows); err != nil {
		return err
	}
	return printNeighbors(w, rows)
}

// testLabel names the test of a row.
func testLabel(r *llm.Row) string {
	if r.Batch > 1 {
		return fmt.Sprintf("%s x %d", r.Test, r.Batch)
	}
	return r.Test
}
