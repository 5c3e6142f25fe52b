package planreport

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans/bundle"
	"sandwich/plans/evidence"
	"sandwich/runtime/phase"
	"sandwich/tuner/measure/spread"
)

// Races writes the measurements on whole forwards, one table per phase, and the verdict.
func Races(w io.Writer, b *bundle.Bundle) error {
	for _, p := range phase.All {
		header, rows := RaceTable(&b.Evidence, p.String())
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintln(w)
		if err := show.Table(w, header, rows, show.ColumnsFrom(1, len(header))...); err != nil {
			return err
		}
	}
	if b.Evidence.Strategy == "" { // made by no search
		return nil
	}
	fmt.Fprintln(w)
	return show.Sentence(w, Verdict(b))
}

// RaceTable returns a table with one arm per row: the arm of the plan first and marked, then the
// others by their gain over the default. A cell has the median and half the range of the samples.
func RaceTable(e *evidence.Evidence, phase string) (header []string, rows [][]string) {
	names, arms := e.Race(phase)
	winner := ""
	for _, o := range e.Outcomes() {
		if o.Phase == phase {
			winner = o.Arm
		}
	}
	gain := func(name string) float64 { return evidence.Over(arms, name).Median }
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case a == b:
			return 0
		case a == winner:
			return -1
		case b == winner:
			return 1
		}
		return cmp.Compare(gain(b), gain(a))
	})
	header = []string{phase + ", tokens/s"}
	for i, name := range names {
		if i == 0 {
			for _, a := range arms[name] {
				header = append(header, strings.TrimPrefix(a.Test, "tg "))
			}
			header = append(header, "n", "gain")
		}
		row := []string{"  " + name}
		if name == winner {
			row[0] = "* " + name
		}
		n := math.MaxInt
		for _, a := range arms[name] {
			row, n = append(row, samplesText(a.Samples)), min(n, len(a.Samples))
		}
		if len(row)+2 != len(header) {
			continue // a test is missing: the evidence was edited by hand
		}
		over := ""
		if name != evidence.ArmDefault {
			over = show.Percent(gain(name))
		}
		rows = append(rows, append(row, strconv.Itoa(n), over))
	}
	return header, rows
}

// samplesText formats the median and half the range, which is absent for a single sample.
func samplesText(samples []float64) string {
	f := spread.Summarize(samples)
	if len(samples) < 2 {
		return fmt.Sprintf("%.0f", f.Median)
	}
	return fmt.Sprintf("%.0f ± %.0f", f.Median, (f.Max-f.Min)/2)
}

// Verdict describes the outcome of a tune in one sentence.
func Verdict(b *bundle.Bundle) string {
	outcomes := b.Evidence.Outcomes()
	switch {
	case b.State() == bundle.Untuned:
		return "untuned: the budget was over before anything could be compared with the default, " +
			"which stays; give a larger --budget"
	case len(outcomes) == 0:
		return "whole forwards could not be measured: the schedules are those that won as kernels"
	}
	var parts []string
	for _, o := range outcomes {
		parts = append(parts, outcomeText(o, b.State()))
	}
	phases := phase.All[:]
	if b.Plan.Model.Pooled() {
		phases = phases[:1]
	}
	for _, p := range phases {
		if !slices.ContainsFunc(outcomes, func(o evidence.Outcome) bool { return o.Phase == p.String() }) {
			parts = append(parts, p.String()+": default kept, not measured, the budget was over")
		}
	}
	text := strings.Join(parts, "; ")
	if b.State() == bundle.DefaultKept {
		text = "no measurable gain over the default, which stays: " + text
	}
	return text
}

// outcomeText describes the outcome of a phase.
func outcomeText(o evidence.Outcome, state bundle.State) string {
	g := o.Gain
	interval := fmt.Sprintf("n=%d", g.Rounds)
	if g.Rounds > 1 {
		interval = fmt.Sprintf("%s to %s, n=%d", strings.TrimSuffix(show.Percent(g.Low), " %"), show.Percent(g.High),
			g.Rounds)
	}
	if !o.Kept && g.Median < 0 { // the winner is of another partition
		return fmt.Sprintf("%s %.0f %% slower than the default (%s), noise %.0f %%; the arm wins by both phases "+
			"together", o.Phase, -100*g.Median, interval, 100*o.Noise)
	}
	if !o.Kept && !g.Beats(o.Noise) {
		return fmt.Sprintf("%s likely faster than the default, by %.0f %% (%s), noise %.0f %%", o.Phase, 100*g.Median,
			interval, 100*o.Noise)
	}
	if !o.Kept {
		return fmt.Sprintf("%s %.0f %% faster than the default (%s), noise %.0f %%",
			o.Phase, 100*g.Median, interval, 100*o.Noise)
	}
	text := "no candidate finished"
	if g.Rounds > 0 {
		text = fmt.Sprintf("at best %s (%s), noise %.0f %%", show.Percent(g.Median), interval, 100*o.Noise)
	}
	if state == bundle.DefaultKept { // which the sentence begins with
		return o.Phase + " " + text
	}
	return o.Phase + ": default kept, measured; " + text
}
