package planreport

import (
	"fmt"
	"strings"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/model/cost"
)

// PlacedReport prints where ops run, one row per range of rows.
var PlacedReport = show.Report[cost.Placed]{
	Columns: []string{"phase", "rows", "ops", "weights", "regime", "target", "split", "why"},
	Numbers: []int{1},
	Cells: func(r *cost.Placed) []string {
		weights := show.Join(" in ", r.Type, r.Compute)
		if r.Type == r.Compute {
			weights = r.Type
		}
		return []string{r.Phase, r.RowsText(), strings.Join(r.Ops, " "), weights, r.Regime, r.Target,
			show.OrDash(r.Split),
			r.Why}
	},
	Header: "phase,from,to,ops,type,compute,regime,target,split,seconds,why",
	Line: func(r *cost.Placed) string {
		return fmt.Sprintf("%s,%d,%d,%s,%s,%s,%s,%s,%s,%.9f,%s", r.Phase, r.From, r.To, strings.Join(r.Ops, " "),
			r.Type,
			r.Compute, r.Regime, show.CSVCell(r.Target), show.CSVCell(r.Split), r.Seconds, show.CSVCell(r.Why))
	},
}
