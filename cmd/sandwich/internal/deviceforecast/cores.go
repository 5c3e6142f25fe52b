package deviceforecast

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sandwich/internal/num"
	"sandwich/plans"
	"sandwich/plans/evidence"
	"sandwich/plans/selection"
	"sandwich/profiles"
	"sandwich/runtime/model"
	"sandwich/runtime/phase"
	"sandwich/runtime/placement"
	"sandwich/tuner/measure/llm"
)

// ceilingShare is the share of its ceilings that an untuned plan is assumed to reach on the cores.
const ceilingShare = 0.7

// CoresSide returns the times of forwards on the cores: those that were measured when the plan was
// tuned, else those of the ceilings.
func CoresSide(host *profiles.Profile, ops *model.Model, c *selection.Choice) (s placement.Side, err error) {
	tests := referenceTests()
	var rate [phase.Count]float64
	for i, p := range phase.All {
		if c.Bundle != nil {
			rate[p] = tunedRate(&c.Bundle.Evidence, p)
		}
		if rate[p] > 0 {
			continue
		}
		limit, _, err := llm.AtMost(host, ops, c.Plan, tests[i])
		if err != nil {
			return s, fmt.Errorf("rates of the cores: %w", err)
		}
		rate[p] = ceilingShare * limit
	}
	if min(rate[phase.Prefill], rate[phase.Decode]) <= 0 {
		return s, errors.New("rates of the cores are 0")
	}
	s[phase.Prefill].Row = 1e9 / rate[phase.Prefill]
	s[phase.Decode].Fixed = time.Duration(1e9 / rate[phase.Decode])
	return s, nil
}

// tunedRate returns the median rate of the best arm of the cores in the race of a phase: in the
// longest prompt, or in decode steps of one sequence. It returns 0 if the evidence has no such arm,
// or if the race ran a part of the model.
func tunedRate(e *evidence.Evidence, p phase.Phase) (rate float64) {
	places, _ := e.Places(p.String())
	i := slices.IndexFunc(places, func(x evidence.Place) bool { return !plans.IsDeviceArm(x.Arm) })
	if i < 0 {
		return 0
	}
	largest := 0
	for _, a := range places[i].Tests {
		var n int
		switch {
		case len(a.Samples) == 0 || strings.Contains(a.Test, ","):
			continue
		case p == phase.Decode:
			if a.Test != "tg batch 1" && !strings.HasPrefix(a.Test, "tg64") {
				continue
			}
			n = 1
		default:
			if _, err := fmt.Sscanf(a.Test, "pp%d", &n); err != nil {
				continue
			}
		}
		if n > largest {
			largest, rate = n, num.Median(a.Samples)
		}
	}
	return rate
}
