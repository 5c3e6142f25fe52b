package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans"
	"sandwich/profiles/calibrate"
	"sandwich/roofline"
	"sandwich/runtime/model"
)

// shownPlan is the stable JSON of plan show.
type shownPlan struct {
	plans.Summary
	Placed []model.Placed `json:"placed,omitempty"` // where ops run, by the ceilings of the plan's host
}

// placedByPlan returns where each op of a plan runs, by ranges of rows.
func placedByPlan(b *plans.Bundle) (out []model.Placed, err error) {
	ops, err := model.Outline(b.Plan.Model)
	if err != nil {
		return nil, err
	}
	p := model.Placer{Model: ops, Plan: &b.Plan, Machine: roofline.NewMachine(&b.Host)}
	for i, most := range []int{max(b.Plan.SeqMax, b.Plan.Chunk), b.Plan.BatchMax} {
		if i > 0 && b.Plan.Model.Pooled() {
			break
		}
		list, err := p.Ranges(model.Phases[i], max(1, most))
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// printPlaced prints where the ops of a plan run.
func printPlaced(w io.Writer, b *plans.Bundle) error {
	fmt.Fprintln(w)
	list, err := placedByPlan(b)
	if err != nil {
		return show.Sentence(w, "Where ops run is unknown: "+err.Error()+".")
	}
	return placedReport.print(w, list, "table")
}

var placedReport = report[model.Placed]{
	columns: []string{"phase", "rows", "ops", "weights", "regime", "target", "split", "why"},
	numbers: []int{1},
	cells: func(r *model.Placed) []string {
		weights := show.Join(" in ", r.Type, r.Compute)
		if r.Type == r.Compute {
			weights = r.Type
		}
		return []string{r.Phase, r.RowsText(), strings.Join(r.Ops, " "), weights, r.Regime, r.Target,
			show.OrDash(r.Split),
			r.Why}
	},
	header: "phase,from,to,ops,type,compute,regime,target,split,seconds,why",
	line: func(r *model.Placed) string {
		return fmt.Sprintf("%s,%d,%d,%s,%s,%s,%s,%s,%s,%.9f,%s", r.Phase, r.From, r.To, strings.Join(r.Ops, " "),
			r.Type,
			r.Compute, r.Regime, show.CSVCell(r.Target), show.CSVCell(r.Split), r.Seconds, show.CSVCell(r.Why))
	},
}

// runExplain returns where the ops of the tests run, with reasons. It runs none of them.
func (f *llmFlags) runExplain(ctx context.Context) (out []model.Placed, err error) {
	s, err := f.openOne()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if f.ceiling {
		if err := measureCeilings(ctx, s.Profile, calibrate.Options{}); err != nil {
			return nil, err
		}
	}
	ops, err := model.Of(s.File)
	if err != nil {
		return nil, err
	}
	p := model.Placer{Model: ops, Plan: s.Plan, Machine: roofline.NewMachine(s.Profile)}
	for _, t := range f.tests() {
		phase, rows := model.Phases[1], t.Batch
		p.Context = t.Middle()
		if t.Prefill {
			phase, rows, p.Context = model.Phases[0], min(t.Tokens, s.Plan.Chunk), t.Depth
		}
		list, err := p.At(phase, rows)
		if err != nil {
			return nil, usageError(err)
		}
		out = append(out, model.Join(list)...)
	}
	return out, nil
}
