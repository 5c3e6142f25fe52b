// Package steps measures the decode steps of the plan that won: the time of a step of one sequence
// by its number of rows, at a short and at a longer context. Its input are the winners of the
// finals, its output the times in the evidence, by which speculation chooses how many drafted
// tokens a step verifies.
package steps

import (
	"context"
	"errors"
	"slices"

	"sandwich/internal/num"
	"sandwich/plans"
	"sandwich/plans/evidence"
	"sandwich/runtime/phase"
	"sandwich/tuner/arms"
	"sandwich/tuner/finals"
	"sandwich/tuner/partition"
	"sandwich/tuner/rig"
	"sandwich/tuner/run"
)

const (
	// maxRounds is the maximum number of samples of each step.
	maxRounds = 7
	// maxRows is the maximum number of rows that is measured; a draft of more tokens is rarely
	// accepted as a whole.
	maxRows = 32
	// fullShare divides the time of the stage among that many samples of each step.
	fullShare = 3
	// attentionMatters is the least increase of a step's time at the longer context for which all
	// numbers of rows are measured there, too.
	attentionMatters = 1.05
)

// Input is the plan that won.
type Input struct {
	Run    *run.Run
	Loader *partition.Loader
	Result finals.Result
}

// measurement has the samples of steps by context length and number of rows.
type measurement struct {
	race    *arms.Race // its tests are the steps
	sampled [][]float64
	sample  float64 // target duration of a sample in seconds
}

// Measure returns the median times of steps of 1 to batch-max rows, at most maxRows. It stops at
// run.StepsEnd of the budget, so that times may be missing; it measures small and large numbers of
// rows first. It returns nil if whole forwards cannot be run, or if a device decodes.
func Measure(ctx context.Context, in Input) ([]evidence.Steps, error) {
	on := in.Result.Partition
	decode := &in.Result.Phases[phase.Decode]
	if in.Loader.Home().Rig == nil || on.Plan.BatchMax < 2 || decode.OnDevice ||
		!slices.Contains(on.Served(), phase.Decode) {
		return nil, nil
	}
	r := arms.New(in.Run, in.Loader, "decode steps", run.StepsEnd)
	r.Add("the plan", on, [phase.Count]*plans.Phase{phase.Decode: &decode.Phase}, false, true)
	order := order(min(on.Plan.BatchMax, maxRows))
	for _, depth := range on.StepDepths() {
		for _, rows := range order {
			r.Tests = append(r.Tests, rig.Test{Phase: phase.Decode, N: rows, Depth: depth, Times: 1})
		}
	}
	m := &measurement{race: r, sampled: make([][]float64, len(r.Tests)),
		sample: in.Run.Until(run.StepsEnd).Seconds() / float64(fullShare*len(r.Tests))}
	err := m.rounds(ctx, len(order))
	if err != nil && !errors.Is(err, run.ErrNoTime) {
		return nil, err
	}
	return m.tables(), nil
}

// rounds samples all steps several times. first is the number of tests at the short context.
func (m *measurement) rounds(ctx context.Context, first int) error {
	for round := range maxRounds + 1 {
		for k := range m.race.Tests {
			if k > first && len(m.race.Tests) > first && !m.attends(first) {
				break
			}
			if err := m.one(ctx, k, round); err != nil {
				return err
			}
		}
	}
	return nil
}

// one samples a step. Round 0 warms up and sets the number of forwards per sample.
func (m *measurement) one(ctx context.Context, k, round int) error {
	x := &m.race.Tests[k]
	m.race.Run.Say(m.race.Stage, x.Name(), false)
	t, err := m.race.Sample(ctx, 0, k)
	if err != nil {
		return err
	}
	if round == 0 {
		if t, err = m.race.Sample(ctx, 0, k); err != nil {
			return err
		}
		*x = x.TimedFor(t.Seconds, m.sample)
	}
	m.sampled[k] = append(m.sampled[k], t.Seconds)
	return nil
}

// attends reports whether the longer context, whose first test has an index, makes a step of one
// row slower.
func (m *measurement) attends(first int) bool {
	short, long := m.sampled[0], m.sampled[first]
	return len(long) == 0 || num.Median(long) > attentionMatters*num.Median(short)
}

// tables returns the medians.
func (m *measurement) tables() (out []evidence.Steps) {
	for k, x := range m.race.Tests {
		if len(m.sampled[k]) == 0 {
			continue
		}
		if len(out) == 0 || out[len(out)-1].Positions != x.Depth {
			if x.N != 1 {
				continue // without a step of one row there is nothing to compare with
			}
			out = append(out, evidence.Steps{Positions: x.Depth})
		}
		s := &out[len(out)-1]
		s.Seconds = append(s.Seconds, make([]float64, max(0, x.N-len(s.Seconds)))...)
		s.Seconds[x.N-1] = num.Significant(num.Median(m.sampled[k]))
	}
	return slices.DeleteFunc(out, func(s evidence.Steps) bool { return len(s.Seconds) < 2 })
}

// order returns 1 to limit, so that any first part of it is spread over the whole range: 1 and
// limit, and then the middle between neighbors, small numbers first.
func order(limit int) []int {
	out := []int{1}
	if limit > 1 {
		out = append(out, limit)
	}
	for len(out) < limit {
		known := slices.Sorted(slices.Values(out))
		for i := range known[1:] {
			if middle := (known[i] + known[i+1]) / 2; middle > known[i] {
				out = append(out, middle)
			}
		}
	}
	return out
}
