package plan

import (
	"fmt"
	"io"

	"sandwich/cmd/sandwich/internal/planreport"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans/bundle"
	"sandwich/plans/summary"
	"sandwich/roofline"
	"sandwich/runtime/model/cost"
	"sandwich/runtime/model/modelshape"
)

// shownPlan is the stable JSON of plan show.
type shownPlan struct {
	summary.Summary
	Placed []cost.Placed `json:"placed,omitempty"` // where ops run, by the ceilings of the plan's host
}

// placedByPlan returns where each op of a plan runs, by ranges of rows.
func placedByPlan(b *bundle.Bundle) (out []cost.Placed, err error) {
	ops, err := modelshape.Outline(b.Plan.Model)
	if err != nil {
		return nil, err
	}
	p := cost.Placer{Model: ops, Plan: &b.Plan, Machine: roofline.NewMachine(&b.Host)}
	for i, limit := range []int{max(b.Plan.SeqMax, b.Plan.Chunk), b.Plan.BatchMax} {
		if i > 0 && b.Plan.Model.Pooled() {
			break
		}
		list, err := p.Ranges(cost.Phases[i], max(1, limit))
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// printPlaced prints where the ops of a plan run.
func printPlaced(w io.Writer, b *bundle.Bundle) error {
	fmt.Fprintln(w)
	list, err := placedByPlan(b)
	if err != nil {
		return show.Sentence(w, "Where ops run is unknown: "+err.Error()+".")
	}
	return planreport.PlacedReport.Print(w, list, "table")
}
