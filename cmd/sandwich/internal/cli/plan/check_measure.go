package plan

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans/bundle"
	"sandwich/plans/check"
	"sandwich/plans/gate"
	"sandwich/profiles/calibrate"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/session"
	"sandwich/tuner/measure"
	"sandwich/tuner/measure/llm"
	"sandwich/tuner/race"
)

// racer runs forwards of two plans of one model: side 0 is the baseline, 1 the candidate.
type racer interface {
	// Warm runs a case under both plans before it is measured.
	Warm(ctx context.Context, c gate.Case) error
	// Sample runs a case and returns its rate in tokens per second.
	Sample(ctx context.Context, side int, c gate.Case) (float64, error)
}

// measured runs both plans interleaved on this host.
func (f *checkFlags) measured(ctx context.Context, a, b *bundle.Bundle, r *CheckReport) ([]gate.Row, error) {
	host, err := machine.Live()
	if err != nil {
		return nil, err
	}
	if len(a.Plan.Placement)+len(b.Plan.Placement) > 0 {
		host.Devices = machine.ListDevices(ctx)
	}
	for _, side := range []*bundle.Bundle{a, b} {
		if err := side.Plan.CheckHost(host); err != nil {
			return nil, exit.Plan(err)
		}
		if side.Plan.Fingerprint != host.Fingerprint() {
			return nil, exit.With(exit.Foreign,
				fmt.Errorf("--measure needs the host of both plans, but %s is for another"+
					" one (%s); run it there, or leave --measure out", side.Plan.Name,
					show.Clip(side.Host.Host.CPUModel, 60)))
		}
	}
	file, _, err := session.OpenModel(f.model)
	if err != nil {
		return nil, exit.Usage(err)
	}
	defer file.Close()
	shape, err := modelshape.Of(file)
	if err != nil {
		return nil, exit.Usage(err)
	}
	if err := check.Bundle(a, nil, &shape); err != nil {
		return nil, exit.With(exit.Input, fmt.Errorf("%w; give the model with --model", err))
	}
	if err := machine.MeasureCeilings(ctx, host, calibrate.Options{}); err != nil {
		return nil, err
	}
	for _, reason := range check.Verify(a, host, nil).Reasons {
		r.Notes = append(r.Notes, "host changed: "+reason)
	}
	cases := gate.Cases(&a.Plan, &b.Plan)
	candidate := &b.Plan
	if f.selfTest {
		candidate = &a.Plan
	}
	two, err := llm.OpenTwoPlans(ctx, file, &a.Plan, candidate, cases)
	if errors.Is(err, llm.ErrOutOfMemory) {
		return nil, exit.With(exit.Noisy, err)
	}
	if err != nil {
		return nil, exit.Model(err)
	}
	defer two.Close()
	var arms racer = two
	if f.selfTest {
		arms = &slowed{two, syntheticSlowdown(float64(f.maxRegress))}
	}
	others := measure.WatchOthers(a.Plan.PUs().Union(b.Plan.PUs()))
	rows, err := f.race(ctx, arms, cases)
	taken := others.Share()
	whole, outline := modelshape.Outline(a.Plan.Model)
	for i := range rows {
		rows[i].Others = taken
		ceiling, err := 0.0, outline
		if err == nil {
			ceiling, _, err = llm.AtMost(host, whole, &a.Plan, llm.CaseTest(cases[i]))
		}
		if err == nil {
			rows[i].BaselineCeiling, rows[i].CandidateCeiling = ceiling, ceiling
		}
	}
	return rows, err
}

// slowed is a racer that slows the candidate down by a known share, for the self-test.
type slowed struct {
	racer
	by float64
}

func (s *slowed) Sample(ctx context.Context, side int, c gate.Case) (float64, error) {
	rate, err := s.racer.Sample(ctx, side, c)
	if side == 1 {
		rate /= 1 + s.by
	}
	return rate, err
}

// Rounds of a race: it may end after minRaceRounds and then after every lookEvery rounds.
const (
	minRaceRounds = 12
	lookEvery     = 4
)

// armSides maps the arms of a round to sides: the baseline, the baseline again, the candidate.
var armSides = []int{0, 0, 1}

// race runs both plans interleaved until every row is decided or the budget ends.
func (f *checkFlags) race(ctx context.Context, arms racer, cases []gate.Case) ([]gate.Row, error) {
	for _, c := range cases {
		if err := arms.Warm(ctx, c); err != nil {
			return nil, err
		}
	}
	update, done := show.FractionBar("plan check")
	defer done()
	left := (f.budget - time.Since(f.began)).Seconds()
	o := race.Options{Tests: len(cases), Least: minRaceRounds, Most: math.MaxInt, Budget: left, Limit: left,
		Look: lookEvery, Seed: 1,
		Enough: func(out []race.Standing, test int) bool { return f.enough(rowOf(cases[test], out, test)) },
		Said: func(_, test int, _ float64) {
			update(time.Since(f.began).Seconds(), f.budget.Seconds(), cases[test].Name())
		}}
	for _, name := range []string{"baseline", "baseline again", "candidate"} {
		o.Arms = append(o.Arms, race.Contender{Name: name, Stays: true})
	}
	out, err := race.Run(ctx, &checkRunner{arms: arms, cases: cases, last: time.Now()}, o)
	if err != nil {
		return nil, err
	}
	var rows []gate.Row
	for i, c := range cases {
		rows = append(rows, *rowOf(c, out, i))
	}
	return rows, nil
}

// rowOf returns the result of a race for a case.
func rowOf(c gate.Case, out []race.Standing, test int) *gate.Row {
	row := &gate.Row{Name: c.Name(), Phase: c.Phase(), Unit: "tokens/s", Why: c.Why}
	for arm, list := range []*[]float64{&row.Baseline, &row.Again, &row.Candidate} {
		for _, seconds := range out[arm].Samples(test) {
			*list = append(*list, float64(c.Rows)/seconds)
		}
	}
	return row
}

// checkRunner runs the arms of a gate's race, whose plans are both loaded.
type checkRunner struct {
	arms  racer
	cases []gate.Case
	last  time.Time // end of the previous sample
}

// Sample implements race.Runner. The cost of a sample includes the time since the previous one.
func (r *checkRunner) Sample(ctx context.Context, arm, test int) (race.Timing, error) {
	rate, err := r.arms.Sample(ctx, armSides[arm], r.cases[test])
	t := race.Timing{Seconds: float64(r.cases[test].Rows) / rate, Cost: time.Since(r.last).Seconds()}
	r.last = time.Now()
	return t, err
}

// enough reports whether a row needs no more samples: its interval is narrow compared with the
// limit, and equal arms agree. It depends on the width and not on the verdict, so that repeated
// checks do not bias the verdict.
func (f *checkFlags) enough(row *gate.Row) bool {
	return !row.Spread(true).Above(float64(f.ceiling)) && row.Estimate(true).Narrow(max(float64(f.maxRegress)/3, 0.005))
}
