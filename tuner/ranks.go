package tuner

import (
	"context"
	"fmt"
	"math"
	"time"

	"sandwich/plans"
	"sandwich/runtime/pool"
)

// worthRanks is how much of the time of one rank several may take, since they cost the bit-equality
// of rule 6; noisyRanks is what they may take where the user allows them for any gain.
const (
	worthRanks = 0.9
	noisyRanks = 0.98
)

// ranksEnd is the part of the budget in which numbers of ranks are compared.
const ranksEnd = 0.1

// chosenRanks is the tensor-parallel degree that a plan is made for, and what was measured to
// choose it.
type chosenRanks struct {
	tp       int
	rejected []plans.Rejected
	arms     []plans.Arm
	samples  []float64 // seconds over those of one rank
}

// chooseRanks measures whole forwards of the default plans of one rank and of each number in
// counts, one after the other since each has its weights cut in its own way. Where a model cannot
// be run one rank stays.
func chooseRanks(ctx context.Context, o Options, counts []int) (out chosenRanks, err error) {
	out.tp = 1
	if len(counts) == 0 {
		return out, nil
	}
	o.Journal = ""
	var one []float64
	worth := worthRanks
	if o.AllowTP {
		worth = noisyRanks
	}
	best := worth
	began := time.Now()
	for _, n := range append([]int{1}, counts...) {
		if one != nil && time.Since(began).Seconds() > ranksEnd*o.Budget.Seconds() {
			out.rejected = append(out.rejected, plans.Rejected{Candidate: fmt.Sprintf("%d ranks", n),
				Reason: "not measured: the budget has no time for it; give a larger --budget, or --tp"})
			continue
		}
		o.TP = n
		seconds, err := forwardSeconds(ctx, o, &out)
		if err != nil || seconds == nil {
			return out, err
		}
		if one == nil {
			one = seconds
		}
		ratio := math.Sqrt(seconds[prefill] / one[prefill] * seconds[decode] / one[decode])
		out.samples = append(out.samples, ratio)
		if n > 1 && ratio < best {
			best, out.tp = ratio, n
		}
	}
	for _, a := range out.arms {
		if len(a.Samples) < minRounds && out.tp > 1 {
			out.tp = 1
			out.rejected = append(out.rejected, plans.Rejected{Candidate: "several ranks",
				Reason: "the budget has no time to compare them with one; give a larger --budget, or --tp"})
		}
	}
	for i, n := range append([]int{1}, counts...)[:len(out.samples)] {
		if n != out.tp {
			out.rejected = append(out.rejected, plans.Rejected{Candidate: fmt.Sprintf("%d ranks", n),
				Reason: fmt.Sprintf("takes %.2f times as long as one rank with the default schedules; more than "+
					"one must take less than %.2f (--allow tp takes any gain)", out.samples[i], worth)})
		}
	}
	return out, nil
}

// forwardSeconds is what a prefill and a decode forward of the default plan take; nil where the
// model cannot be run.
func forwardSeconds(ctx context.Context, o Options, out *chosenRanks) ([]float64, error) {
	t := &tuning{ctx: ctx, o: o, began: time.Now()}
	defer t.close()
	if err := t.prepare(); err != nil {
		return nil, err
	}
	if t.rig == nil {
		return nil, nil
	}
	var seconds []float64
	var err error
	t.workers.Pool.Lead(func(l *pool.Leader) { seconds, err = t.forwards(l, out) })
	return seconds, err
}

// forwards samples both phases and notes what it found.
func (t *tuning) forwards(l *pool.Leader, out *chosenRanks) ([]float64, error) {
	name := fmt.Sprintf("%d ranks", t.def.TP())
	prompt, step := t.rig.prefillTest(min(t.def.Chunk, 128)), t.rig.decodeTest(1, min(decodeDepth,
		max(1, t.shape.Context-1)))
	var seconds []float64
	for i, x := range []*test{prefill: &prompt, decode: &step} {
		a, err := t.rig.newArm(name, phaseOf(t.def, i), false)
		if err != nil {
			return nil, err
		}
		samples, err := t.sampleAlone(l, a, x)
		a.executor.Close()
		if err != nil {
			return nil, err
		}
		out.arms = append(out.arms, t.armEvidence("ranks, "+name, x, samples))
		seconds = append(seconds, fast(samples))
	}
	return seconds, nil
}

// sampleAlone repeats a test until it has enough samples or its time is over; the first one counts
// where there is time for no more.
func (t *tuning) sampleAlone(l *pool.Leader, a *arm, x *test) (samples []float64, err error) {
	t.say("ranks", a.name+", "+x.name, true)
	began := time.Now()
	first, err := t.calibrate(l, a, x)
	if err != nil {
		return nil, err
	}
	samples = []float64{first}
	for len(samples) < maxRounds && time.Since(began).Seconds() < ranksEnd/4*t.o.Budget.Seconds() {
		s, err := t.rig.sample(l, a, x)
		if err != nil {
			return nil, err
		}
		samples = append(samples, s)
	}
	return samples, nil
}
