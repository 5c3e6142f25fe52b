package planpage

import (
	"fmt"

	"sandwich/cmd/sandwich/internal/planreport"
	"sandwich/plans/bundle"
	"sandwich/profiles"
	"sandwich/runtime/server/status"
	"sandwich/tuner/measure/spread"
)

// addStory adds how the plan of a bundle was found: the steps of the search and the races.
func addStory(out *status.Plan, b *bundle.Bundle) {
	s, err := planreport.NewStory(b)
	if err != nil {
		return // the memory of the plan cannot be computed; the page shows the plan without a story
	}
	add := func(name, format string, args ...any) {
		out.Story = append(out.Story, status.Fact{Name: name, Text: fmt.Sprintf(format, args...)})
	}
	if t := s.Trace; t != nil {
		add("trees", "%d of the machine, by grouped and removed nodes", t.Trees)
		add("configurations", "%d fit model, memory and quota, of %d sections; %d have distinct costs",
			t.Configurations, t.Sections, t.DistinctCosts)
		add("simulated", "%d under %s, by %s", t.Simulated, t.Load, t.Objective)
	}
	if s.Tables > 0 {
		add("kernels", "%d timed for %d schedule tables in %s", s.Trials, s.Tables, profiles.FormatSeconds(s.Searched))
	}
	for _, p := range s.Phases {
		race := status.Race{Phase: p.Phase, Verdict: p.Verdict}
		for i, x := range p.Places {
			arm := status.Arm{Name: x.Arm, Outcome: p.Outcome(i), Gain: x.Over.Median, Low: x.Over.Low,
				High: x.Over.High, Rounds: x.Over.Rounds, Tests: []status.Rate{}}
			for _, t := range x.Tests {
				arm.Tests = append(arm.Tests, status.Rate{Test: t.Test, Median: spread.Summarize(t.Samples).Median})
			}
			race.Arms = append(race.Arms, arm)
		}
		out.Races = append(out.Races, race)
		add("raced in "+p.Phase, "%d arms on whole forwards, interleaved", len(p.Places))
	}
	if b.Evidence.Strategy != "" {
		add("time", "%s of a budget of %s", profiles.FormatSeconds(s.Spent), profiles.FormatSeconds(s.Budget))
		out.Outcome = planreport.Verdict(b)
	}
}
