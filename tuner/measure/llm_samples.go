package measure

import (
	"context"
	"time"

	"sandwich/runtime/counters"
)

// shareGoal is the part of its fair share that a test keeps beside a neighbour.
const shareGoal = 0.7

// llmSamples are the tokens per second of one test under one plan.
type llmSamples struct {
	alone, disturbed []float64
	taken            []float64 // parts of the PU's time that the neighbour took

	counts  counters.Counts // of all samples without the neighbour
	seconds float64         // they took
}

// settling is how long the neighbour runs before a sample begins, so that the kernel knows it.
const settling = 60 * time.Millisecond

// sample measures a test once, and then once beside the neighbour where there is one. The first
// sample only warms up.
func (o *LLMOptions) sample(ctx context.Context, a *Arm, t Test, warming bool, to *llmSamples) error {
	before, began := a.counted(), time.Now()
	rate, err := a.measure(ctx, o.Vocab, t)
	if err != nil {
		return err
	}
	if warming {
		return nil
	}
	to.counts = to.counts.Add(a.counted().Sub(before))
	to.seconds += time.Since(began).Seconds()
	to.alone = append(to.alone, rate)
	if o.Beside == nil {
		return nil
	}
	if err := o.Beside.begin(); err != nil {
		return err
	}
	time.Sleep(settling)
	if rate, err = a.measure(ctx, o.Vocab, t); err != nil {
		return err
	}
	part, err := o.Beside.end()
	if err != nil {
		return err
	}
	to.disturbed, to.taken = append(to.disturbed, rate), append(to.taken, part)
	return nil
}

// NeighbourRow is what a neighbour costs one test. Shares are of the medians.
type NeighbourRow struct {
	PU        int       `json:"pu"`
	Asked     float64   `json:"asked"` // part of the PU's time
	Taken     float64   `json:"taken"` // what the neighbour got of it, median
	Rate      float64   `json:"tokens_per_second"`
	Min       float64   `json:"min"`
	Max       float64   `json:"max"`
	Samples   []float64 `json:"samples"`
	FairShare float64   `json:"fair_share_tokens_per_second"`
	Share     float64   `json:"of_fair_share"`
	Goal      float64   `json:"goal"`
}

// row is what the neighbour made of a test that runs at the given rate without it.
func (n Neighbour) row(alone float64, pus []int, s *llmSamples) *NeighbourRow {
	sp := Summarize(s.disturbed)
	fair := alone * n.fairPart(pus)
	return &NeighbourRow{PU: n.PU, Asked: n.Part, Taken: Summarize(s.taken).Median, Rate: sp.Median, Min: sp.Min,
		Max: sp.Max, Samples: s.disturbed, FairShare: fair, Share: sp.Median / fair, Goal: shareGoal}
}
