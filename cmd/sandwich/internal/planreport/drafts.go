package planreport

import (
	"fmt"
	"slices"
	"strings"

	"sandwich/internal/message"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/evidence"
	"sandwich/plans/summary"
	"sandwich/runtime/engine/steptimes"
	"sandwich/runtime/model/modelshape"
)

// Summarize returns a summary of a bundle. If no times of decode steps were measured, they are
// estimated from the ceilings of the plan's host.
func Summarize(b *bundle.Bundle) summary.Summary {
	s := summary.Of(b)
	if s.Speculation != nil || s.Pooled || s.BatchMax < 2 || len(b.Host.Ceilings) == 0 {
		return s
	}
	m, err := modelshape.Outline(b.Plan.Model)
	if err != nil {
		return s // a family of a later version
	}
	curves, err := steptimes.Estimate(m, &b.Plan, &b.Host, b.Plan.BatchMax)
	if err != nil {
		return s
	}
	var steps []evidence.StepCurve
	for _, c := range curves {
		x := evidence.StepCurve{Positions: c.Positions}
		for _, t := range c.Times {
			x.Ratios = append(x.Ratios, t/curves[0].Times[0])
		}
		steps = append(steps, x)
	}
	s.Speculation = summary.SpeculationOf(steps, true)
	return s
}

// speculationRows describes the times of decode steps and the expected speeds with drafts.
func speculationRows(s *summary.Speculation, shape *plans.ModelShape) (rows [][]string) {
	if s == nil {
		return nil
	}
	how := "measured"
	if s.Estimated {
		how = "estimated"
	}
	for i, c := range s.Steps {
		title := ""
		if i == 0 {
			title = "decode steps"
		}
		rows = append(rows, []string{title, fmt.Sprintf("%s, at %d positions: %s", how, c.Positions, stepsText(&c))})
	}
	if text := expertsText(shape, len(s.Steps[0].Ratios)); text != "" {
		rows = append(rows, []string{"", text})
	}
	if s.Drafts != nil {
		rows = append(rows, []string{"speculation", draftsText(s.Drafts)})
	}
	if s.Long != nil {
		last := s.Steps[len(s.Steps)-1].Positions
		rows = append(rows, []string{"", fmt.Sprintf("at %d positions, %s", last, draftsText(s.Long))})
	}
	return rows
}

// stepsText lists the times of steps relative to one row at the first context length.
func stepsText(c *evidence.StepCurve) string {
	parts := make([]string, len(c.Ratios))
	interpolated := false
	for i, r := range c.Ratios {
		parts[i] = fmt.Sprintf("%d: %.2f", i+1, r)
		if c.Measured != nil && !slices.Contains(c.Measured, i+1) {
			parts[i] += "*"
			interpolated = true
		}
	}
	text := strings.Join(parts, ", ") + " rows"
	if interpolated {
		text += " (* interpolated)"
	}
	return text
}

// expertsText states how many distinct experts of a layer the rows of a step are expected to use,
// "" for a dense model.
func expertsText(shape *plans.ModelShape, rows int) string {
	if shape.Experts == 0 {
		return ""
	}
	var parts []string
	for n := 1; n <= rows; n *= 2 {
		used := plans.Reached(shape.ExpertsUsed, shape.Experts, n) * float64(shape.Experts)
		parts = append(parts, fmt.Sprintf("%d: %.0f", n, used))
	}
	return fmt.Sprintf("expected distinct experts of %d by rows: %s", shape.Experts, strings.Join(parts, ", "))
}

// draftsText describes the expected speeds of one sequence with drafts.
func draftsText(list []evidence.Expected) string {
	parts := make([]string, len(list))
	for i, x := range list {
		parts[i] = fmt.Sprintf("%.2f times the speed at %.0f %%", x.Speed, 100*x.Acceptance)
		if x.Depth > 0 {
			parts[i] += fmt.Sprintf(" (%s per step)", message.Plural(x.Depth, "drafted token"))
		}
	}
	return "one sequence by acceptance: " + strings.Join(parts, ", ")
}
