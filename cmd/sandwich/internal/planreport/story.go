package planreport

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/footprint"
	"sandwich/cmd/sandwich/internal/outfile"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/evidence"
	"sandwich/plans/summary"
	"sandwich/profiles"
	"sandwich/runtime/mem"
	"sandwich/runtime/phase"
	"sandwich/topotree"
	"sandwich/topotree/draw"
	"sandwich/tuner/measure/spread"
)

// Story describes how a plan was found. Its JSON form is stable.
type Story struct {
	Plan     string          `json:"plan"`
	State    bundle.State    `json:"state"`
	Trace    *evidence.Trace `json:"search_trace,omitempty"` // absent if the build that tuned the plan did not record it
	Tables   int             `json:"kernel_tables"`
	Trials   int             `json:"kernel_trials"`
	Kept     int             `json:"kernel_lengths_of_earlier_runs"`
	Searched float64         `json:"kernel_search_s"`
	Spent    float64         `json:"spent_s"`
	Budget   float64         `json:"budget_s"`
	Phases   []PhaseStory    `json:"phases"`
	Memory   []footprint.Row `json:"memory"` // with the default --ctx and --parallel of serve
	Rejected int             `json:"rejected"`
}

// PhaseStory holds the result of the race of a phase.
type PhaseStory struct {
	Phase    string           `json:"phase"`
	PUs      topotree.CPUSet  `json:"pus"`
	Verdict  string           `json:"verdict"`
	Noise    float64          `json:"noise"`
	RunnerUp string           `json:"runner_up,omitempty"`
	Places   []evidence.Place `json:"places"`
}

// NewStory returns the story of a plan from the evidence of its bundle.
func NewStory(b *bundle.Bundle) (*Story, error) {
	e := &b.Evidence
	s := &Story{Plan: b.Plan.Name, State: b.State(), Trace: e.Trace, Tables: len(e.Searches), Trials: e.Trials,
		Spent: e.Spent, Budget: e.Budget, Rejected: len(e.Rejected)}
	for _, x := range e.Searches {
		s.Kept, s.Searched = s.Kept+x.Kept, s.Searched+x.Seconds
	}
	for _, x := range []struct {
		name string
		of   *plans.Phase
	}{{phase.Prefill.String(), &b.Plan.Prefill}, {phase.Decode.String(), &b.Plan.Decode}} {
		places, noise := e.Places(x.name)
		if len(places) == 0 {
			continue
		}
		p := PhaseStory{Phase: x.name, PUs: x.of.PUs, Noise: noise, Places: places, Verdict: PlacesText(places, noise)}
		p.Verdict += s.predictedText(x.name, x.of.PUs, b.Plan.TP(), places[0].Tests)
		if r := evidence.RunnerUp(places); r != nil {
			p.RunnerUp = r.Arm
		}
		s.Phases = append(s.Phases, p)
	}
	var err error
	s.Memory, err = footprint.Serving(&b.Plan, footprint.Context(&b.Plan), footprint.DefaultParallel, false)
	return s, err
}

// PlacesText describes the winner, the arms that it beat, and those that cannot be distinguished
// from it.
func PlacesText(places []evidence.Place, noise float64) string {
	first, runner, second := places[0].Arm, evidence.RunnerUp(places), ""
	equal := fmt.Sprintf("two equal arms differ by up to %.1f %%", 100*noise)
	text := fmt.Sprintf("%s was the only arm", first)
	if runner != nil {
		second = runner.Arm
		text = fmt.Sprintf("%s is faster than the runner-up, %s, by %s; %s", first, second, gainText(runner.Behind),
			equal)
		switch {
		case !runner.Compared():
			text = fmt.Sprintf("%s and the runner-up, %s, share no round; relative to the default they are at %s and "+
				"%s, and %s", first, second, gainText(places[0].Over), gainText(runner.Over), equal)
		case runner.Noise && first != evidence.ArmDefault && runner.Behind.Likely():
			text = fmt.Sprintf("%s is likely faster than the runner-up, %s, with identical logits: %s, which equal "+
				"arms show in one of %.0f races; %s", first, second, gainText(runner.Behind), 1/runner.Behind.Chance,
				equal)
		case runner.Noise:
			text = fmt.Sprintf("%s and the runner-up, %s, do not differ measurably: %s, and %s", first, second,
				gainText(runner.Behind), equal)
		}
	}
	if first == evidence.ArmDefault && runner != nil {
		text += "; the default is kept unless an arm is likely faster"
	}
	var alike []string
	for _, p := range places[1:] {
		if p.Noise && p.Arm != evidence.ArmAgain && p.Arm != second {
			alike = append(alike, p.Arm)
		}
		if p.Arm == evidence.ArmUnpinned && p.Compared() && !p.Noise {
			text += fmt.Sprintf("; relative to unpinned threads it is %s", gainText(p.Behind))
		}
	}
	if len(alike) > 0 {
		text += "; within noise is also the difference to " + strings.Join(alike, " and to ")
	}
	return text
}

// predictedText compares the predicted rate of the winner of a phase with the measured one; it
// returns "" if there is no prediction.
func (s *Story) predictedText(name string, pus topotree.CPUSet, tp int, tests []evidence.Arm) string {
	if s.Trace == nil {
		return ""
	}
	for _, c := range s.Trace.Candidates {
		had, test, rate := c.PrefillPUs, "pp512", c.PrefillRate
		if name == phase.Decode.String() {
			had, test, rate = c.DecodePUs, "tg batch 1", c.DecodeRate
		}
		if c.TP != tp || !had.Equal(pus) || rate <= 0 {
			continue
		}
		for _, t := range tests {
			if t.Test == test && len(t.Samples) > 0 {
				ran := spread.Summarize(t.Samples).Median
				return fmt.Sprintf("; for %s the simulation predicted %.4g tokens/s, measured were %.4g "+
					"(%+.0f %%)", test, rate,
					ran, 100*(ran/rate-1))
			}
		}
	}
	return ""
}

// gainText formats a gain with its interval.
func gainText(g evidence.Gain) string {
	return fmt.Sprintf("%+.1f %% (%+.1f to %+.1f, n=%d)", 100*g.Median, 100*g.Low, 100*g.High, g.Rounds)
}

func (s *Story) Print(w io.Writer, b *bundle.Bundle) error {
	fmt.Fprintf(w, "%s\n", show.Printable(summary.Headline(&b.Plan, s.State)))
	if err := s.printSteps(w); err != nil {
		return err
	}
	for _, p := range s.Phases {
		fmt.Fprintln(w)
		if err := p.Print(w); err != nil {
			return err
		}
	}
	if b.Evidence.Strategy != "" {
		fmt.Fprintln(w)
		if err := show.Sentence(w, Verdict(b)); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	if err := footprint.Print(w, s.Memory); err != nil {
		return err
	}
	if s.Trace != nil && len(s.Trace.Assumed) > 0 {
		fmt.Fprintln(w, "\nThe simulation is based on:")
		list := s.Trace.Measured
		if e := s.Trace.Errors; e != nil {
			list = append(slices.Clone(list), e.String())
		}
		for _, a := range append(list, s.Trace.Assumed...) {
			if err := show.Sentence(w, "- "+show.Printable(a)); err != nil {
				return err
			}
		}
	}
	return nil
}

// printSteps prints the number of candidates at each step from the tree to the race.
func (s *Story) printSteps(w io.Writer) error {
	var rows [][]string
	add := func(what string, n int, format string, args ...any) {
		rows = append(rows, []string{what, strconv.Itoa(n), fmt.Sprintf(format, args...)})
	}
	if r := s.Trace; r != nil {
		more := ""
		if r.Truncated {
			more = ", truncated"
		}
		add("trees", r.Trees, "of the machine, by grouped and removed nodes%s", more)
		add("sections", r.Sections, "distinct cuts of these trees")
		add("configurations", r.Configurations, "that fit model, memory and quota, %d with distinct costs",
			r.DistinctCosts)
		add("simulated", r.Simulated, "%s; by %s, in %.2g s", r.Load, r.Objective, r.Seconds)
	}
	kept := ""
	if s.Kept > 0 {
		kept = fmt.Sprintf(", and %d row counts from earlier runs", s.Kept)
	}
	add("kernel tables", s.Tables, "from %d kernels timed in %.3g s%s", s.Trials, s.Searched, kept)
	for _, p := range s.Phases {
		rounds := 0
		for _, x := range p.Places {
			rounds = max(rounds, x.Over.Rounds)
		}
		add("raced in "+p.Phase, len(p.Places), "arms on whole forwards, interleaved, in up to %d rounds", rounds)
	}
	fmt.Fprintln(w)
	if err := show.Table(w, []string{"step", "count", "total " + strconv.FormatFloat(s.Spent, 'f', 1, 64) + " s"}, rows,
		1); err != nil {
		return err
	}
	if s.Trace == nil {
		return nil
	}
	rows = nil
	for i, c := range s.Trace.Candidates {
		rows = append(rows, []string{strconv.Itoa(i + 1), c.Name, strconv.Itoa(c.TP), c.PrefillPUs.String(),
			c.DecodePUs.String(), fmt.Sprintf("%.4g", c.PrefillRate), RateText(c.DecodeRate),
			profiles.FormatSeconds(c.Latency), mem.FormatBytes(c.Bytes)})
	}
	off := ""
	if e := s.Trace.Errors; e != nil {
		off = fmt.Sprintf(" ±%.0f %%", 100*e.Median)
	}
	fmt.Fprintln(w)
	return show.Table(w, []string{"", "simulated", "TP", "prefill PUs", "decode PUs", "prefill tokens/s" + off,
		"decode tokens/s" + off, "latency" + off, "memory"}, rows, 0, 2, 5, 6, 7, 8)
}

// Print prints the race of a phase, one arm per row.
func (p *PhaseStory) Print(w io.Writer) error {
	header := []string{p.Phase + ", tokens/s"}
	for _, t := range p.Places[0].Tests {
		header = append(header, strings.TrimPrefix(t.Test, "tg "))
	}
	tests := len(header)
	header = append(header, "n", "over the default", "behind the winner", "")
	var rows [][]string
	for i, x := range p.Places {
		row := []string{"  " + x.Arm}
		if i == 0 {
			row[0] = "* " + x.Arm
		}
		for _, t := range x.Tests {
			row = append(row, samplesText(t.Samples))
		}
		if len(row) != tests {
			continue // the file was edited and lacks a test of the other arms
		}
		over, behind := "", ""
		if x.Arm != evidence.ArmDefault {
			over = intervalText(x.Over)
		}
		if i > 0 && x.Compared() {
			behind = intervalText(x.Behind)
		}
		rows = append(rows, append(row, strconv.Itoa(len(x.Tests[0].Samples)), over, behind, p.Outcome(i)))
	}
	numbers := show.ColumnsFrom(1, len(header)-1)
	if err := show.Table(w, header, rows, numbers...); err != nil {
		return err
	}
	return show.Sentence(w, p.Phase+": "+show.Printable(p.Verdict)+".")
}

// Outcome compares an arm of the race with the first one, in one or two words.
func (p *PhaseStory) Outcome(i int) string {
	x := &p.Places[i]
	switch {
	case i == 0:
		return "winner"
	case !x.Compared():
		return "no common round"
	case x.Noise && x.Behind.Likely() && p.Places[0].Arm != evidence.ArmDefault:
		return "likely slower"
	case x.Noise:
		return "noise"
	case x.Behind.Median < 0:
		return "faster"
	}
	return "slower"
}

// RateText formats a predicted rate; "" for a phase that the model does not have.
func RateText(rate float64) string {
	if rate == 0 {
		return ""
	}
	return fmt.Sprintf("%.4g", rate)
}

// intervalText formats a gain with its interval for a column.
func intervalText(g evidence.Gain) string {
	return fmt.Sprintf("%+.1f %% (%+.1f to %+.1f)", 100*g.Median, 100*g.Low, 100*g.High)
}

// WritePhases writes a picture of the machine of a plan that marks the PUs of both phases.
func WritePhases(ctx context.Context, path string, b *bundle.Bundle) error {
	if b.Host.Machine == nil || b.Host.Machine.Tree == nil {
		return exit.Usage(fmt.Errorf("--svg cannot be drawn: the profile in the plan has no machine tree"))
	}
	p := &b.Plan
	prefill, decode := p.Prefill.PUs, p.Decode.PUs
	if p.Model.Pooled() {
		decode = topotree.CPUSet{}
	}
	o := draw.Options{Title: fmt.Sprintf("%s on %s", p.Name, b.Host.Host.CPUModel)}
	for _, m := range []draw.Mark{{Name: "prefill and decode", CPUs: prefill.Intersect(decode)},
		{Name: "prefill", CPUs: prefill.Minus(decode)}, {Name: "decode", CPUs: decode.Minus(prefill)}} {
		if !m.CPUs.IsEmpty() {
			o.Marks = append(o.Marks, m)
		}
	}
	if p.TP() > 1 {
		for _, r := range p.Ranks {
			o.Teams = append(o.Teams, r.PUs)
		}
	}
	return outfile.Write(ctx, path, func(w io.Writer) error { return draw.SVG(w, b.Host.Machine.Tree, o) })
}
