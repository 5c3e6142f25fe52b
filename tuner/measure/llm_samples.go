package measure

import (
	"context"
	"time"

	"sandwich/runtime/counters"
	"sandwich/runtime/pool"
)

// shareGoal is the part of its fair share that a test keeps beside a neighbor.
func shareGoal(t Test) float64 {
	if t.Prefill {
		return 0.9
	}
	return 0.8
}

// llmSamples are the tokens per second of one test under one plan.
type llmSamples struct {
	alone, disturbed []float64
	taken            []float64 // parts of the PU's time that the neighbor took

	quiet, beset LostRow // of the samples without and beside the neighbor

	counts  counters.Counts // of all samples without the neighbor
	seconds float64         // they took
}

// settling is how long the neighbor runs before a sample begins, so that the kernel knows it.
const settling = 60 * time.Millisecond

// sample measures a test once, and then once beside the neighbor where there is one. The first
// sample only warms up.
func (o *LLMOptions) sample(ctx context.Context, a *Arm, t Test, warming bool, to *llmSamples) error {
	if o.Neighbor != nil {
		a.calm(ctx)
	}
	before, began, lost := a.counted(), time.Now(), a.lost()
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
	to.quiet.add(a.lost(), lost)
	if o.Neighbor == nil {
		return nil
	}
	if err := o.Neighbor.begin(); err != nil {
		return err
	}
	time.Sleep(settling)
	lost = a.lost()
	if rate, err = a.measure(ctx, o.Vocab, t); err != nil {
		return err
	}
	part, err := o.Neighbor.end()
	if err != nil {
		return err
	}
	to.beset.add(a.lost(), lost)
	to.disturbed, to.taken = append(to.disturbed, rate), append(to.taken, part)
	return nil
}

// NeighborRow is what a neighbor costs one test. Shares are of the medians.
type NeighborRow struct {
	PU        int       `json:"pu"`
	Asked     float64   `json:"asked"` // part of the PU's time
	Taken     float64   `json:"taken"` // what the neighbor got of it, median
	Rate      float64   `json:"tokens_per_second"`
	Min       float64   `json:"min"`
	Max       float64   `json:"max"`
	Samples   []float64 `json:"samples"`
	FairShare float64   `json:"fair_share_tokens_per_second"`
	Share     float64   `json:"of_fair_share"`
	Goal      float64   `json:"goal"`
	Lost      LostRow   `json:"lost"`
}

// LostRow is what was done about workers that lost their CPUs, over all samples of a test.
type LostRow struct {
	Apart   uint64 `json:"chunks_apart"`     // computed into the memory of a worker at risk
	Again   uint64 `json:"chunks_again"`     // computed twice, by another worker
	LeftOut uint64 `json:"workers_left_out"` // times
}

func (r *LostRow) add(now, before pool.WorkerStats) {
	r.Apart += now.Apart - before.Apart
	r.Again += now.Taken - before.Taken
	r.LeftOut += now.Left - before.Left
}

// lost is what the arm's workers counted of it up to now.
func (a *Arm) lost() pool.WorkerStats {
	s := a.Runner.Pool().Stats()
	return s.Total()
}

// calm waits until the workers have forgotten the neighbor of the sample before.
func (a *Arm) calm(ctx context.Context) {
	for began := time.Now(); ctx.Err() == nil && time.Since(began) < mostCalm && a.Runner.Pool().Stats().AtRisk; {
		time.Sleep(settling)
	}
}

// mostCalm bounds that wait on a machine that is never calm.
const mostCalm = 3 * time.Second

// row is what the neighbor made of a test that runs at the given rate without it.
func (n Neighbor) row(alone, goal float64, pus []int, s *llmSamples) *NeighborRow {
	sp := Summarize(s.disturbed)
	fair := alone * n.fairPart(pus)
	return &NeighborRow{PU: n.PU, Asked: n.Part, Taken: Summarize(s.taken).Median, Rate: sp.Median, Min: sp.Min,
		Max: sp.Max, Samples: s.disturbed, FairShare: fair, Share: sp.Median / fair, Goal: goal, Lost: s.beset}
}
