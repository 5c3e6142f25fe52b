package llm

import (
	"context"
	"time"

	"sandwich/runtime/counters"
	"sandwich/runtime/energy"
	"sandwich/runtime/pool"
	"sandwich/topotree"
	"sandwich/tuner/measure/spread"
)

// shareGoal is the fraction of its fair share that a test should keep with a neighbor.
func shareGoal(t Test) float64 {
	if t.Prefill {
		return 0.9
	}
	return 0.8
}

// llmSamples are the tokens per second of one test under one plan.
type llmSamples struct {
	alone, disturbed []float64
	taken            []float64 // fractions of the PU's time that the neighbor used

	quiet, beset LostRow // of the samples without and with the neighbor

	counts  counters.Counts // of all samples without the neighbor
	seconds float64         // duration of these samples
	energy  energy.Reading  // used during these samples
}

// settling is the time that the neighbor runs before a sample, so that the kernel's scheduler has
// adapted.
const settling = 60 * time.Millisecond

// sample measures a test once, and once more with the neighbor if there is one. The first sample
// only warms up.
func (o *Options) sample(ctx context.Context, a *Arm, t Test, warming bool, to *llmSamples) error {
	if o.Neighbor != nil {
		a.calm(ctx)
	}
	before, began, lost, used := a.counted(), time.Now(), a.lost(), o.Meter.Read()
	rate, err := a.measure(ctx, o.Vocab, t)
	if err != nil {
		return err
	}
	if warming {
		return nil
	}
	to.counts = to.counts.Add(a.counted().Sub(before))
	to.energy = to.energy.Add(o.Meter.Read().Sub(used))
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

// NeighborRow is the effect of a neighbor on one test. Shares are of the medians.
type NeighborRow struct {
	PU        int       `json:"pu"`
	Asked     float64   `json:"asked"` // fraction of the PU's time that the neighbor requests
	Taken     float64   `json:"taken"` // fraction that the neighbor got, median
	Rate      float64   `json:"tokens_per_second"`
	Min       float64   `json:"min"`
	Max       float64   `json:"max"`
	Samples   []float64 `json:"samples"`
	FairShare float64   `json:"fair_share_tokens_per_second"`
	Share     float64   `json:"of_fair_share"`
	Goal      float64   `json:"goal"`
	Lost      LostRow   `json:"lost"`
}

// LostRow counts the work of workers that lost their CPUs, over all samples of a test.
type LostRow struct {
	Apart   uint64 `json:"chunks_apart"`     // computed into private buffers
	Again   uint64 `json:"chunks_again"`     // computed twice, by another worker
	LeftOut uint64 `json:"workers_left_out"` // number of times
}

func (r *LostRow) add(now, before pool.WorkerStats) {
	r.Apart += now.Private - before.Private
	r.Again += now.Taken - before.Taken
	r.LeftOut += now.Left - before.Left
}

// lost returns the counters of the arm's workers.
func (a *Arm) lost() pool.WorkerStats {
	s := a.Runner.Pool().Stats()
	return s.Total()
}

// calm waits until the workers no longer react to the neighbor of the previous sample.
func (a *Arm) calm(ctx context.Context) {
	for began := time.Now(); ctx.Err() == nil && time.Since(began) < maxCalm && a.Runner.Pool().Stats().AtRisk; {
		time.Sleep(settling)
	}
}

// maxCalm bounds that wait.
const maxCalm = 3 * time.Second

// row returns the effect of the neighbor on a test that runs at the given rate without it.
func (n Neighbor) row(alone, goal float64, pus topotree.CPUSet, s *llmSamples) *NeighborRow {
	sp := spread.Summarize(s.disturbed)
	fair := alone * n.fairPart(pus)
	return &NeighborRow{PU: n.PU, Asked: n.Part, Taken: spread.Summarize(s.taken).Median, Rate: sp.Median, Min: sp.Min,
		Max: sp.Max, Samples: s.disturbed, FairShare: fair, Share: sp.Median / fair, Goal: goal, Lost: s.beset}
}
