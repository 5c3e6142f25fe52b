package calibrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"sandwich/profiles"
	"sandwich/runtime/pool"
)

// FullOptions configures Full. The zero value selects the full probe.
type FullOptions struct {
	Budget time.Duration // 0: FullBudget for the allowed PUs
	// in seconds; called between samples, not concurrently; may be nil
	Progress func(done, total float64, figure string)

	// For tests: the maximum number of samples per figure, 0 for as many as the budget permits; and
	// the time after which a round trip between PUs is abandoned, 0 for lostAfter.
	samples  int
	patience time.Duration
}

// FullBudget returns the duration of a full probe on a number of PUs, without the preparation of
// memory. If not all pairs of PUs can be measured in this time, whole domains of the machine are
// sampled. If a disturbed machine leaves figures without samples, the probe may take up to twice as
// long; figures that are still missing are noted.
func FullBudget(pus int) time.Duration {
	return min(14*time.Second+time.Duration(pus)*time.Second/2, 110*time.Second)
}

// stage is one part of the probe with its fraction of the budget.
type stage struct {
	name    string
	share   float64
	between bool // needs two PUs
	run     func(ctx context.Context, until time.Time) error
}

// Full measures what Measure does and then the structure of the machine: the round-trip time of
// cache lines between PUs; how much pairs of PUs slow each other down in arithmetic, in the
// last-level cache and in memory; the bandwidth between NUMA nodes, for single and concurrent
// flows; the peaks of sets of PUs; memory saturation curves; barriers and all-reduces. It adds
// the clusters that it finds to the profile, as candidates for the group transform, and distinct
// speeds as colors. It runs on allowed PUs only. If ctx is canceled, Full stops between two
// samples, keeps the figures so far, marks the profile as partial and returns ctx's error.
func Full(ctx context.Context, p *profiles.Profile, o FullOptions) error {
	began := time.Now()
	if o.Budget <= 0 {
		o.Budget = FullBudget(p.Allowed().Count())
	}
	tell := func(float64, string) {}
	if o.Progress != nil {
		tell = func(seconds float64, figure string) { o.Progress(seconds, o.Budget.Seconds(), figure) }
	}
	p.Sets, p.Latent, p.Matrices = nil, nil, nil
	ceilings := o.Budget * 15 / 100
	err := Measure(ctx, p, Options{Budget: ceilings, Samples: cmp.Or(o.samples, 25), Progress: func(done, total float64,
		figure string) {
		tell(ceilings.Seconds()*done/total, figure)
	}})
	if err == nil {
		err = structure(ctx, p, o, o.Budget-ceilings, func(seconds float64, figure string) {
			tell(ceilings.Seconds()+seconds, figure)
		})
	}
	p.Probe = newProbe("full", began, err)
	return err
}

// structure measures everything except what Measure measures.
func structure(ctx context.Context, p *profiles.Profile, o FullOptions, budget time.Duration,
	tell func(float64, string)) error {
	workers, err := pool.New(p.Allowed().Slice(), pool.Options{Pin: true})
	if err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	defer workers.Close()
	f := newFull(workers, p)
	f.tell, f.samples, f.patience = tell, cmp.Or(o.samples, maxSamples), cmp.Or(o.patience, lostAfter)
	tell(0, "memory")
	if f.memory, err = f.prepareMemory(); err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	defer f.memory.free()
	err = f.stages(ctx, budget)
	p.Matrices, p.Sets = f.matrices, f.sets
	for _, n := range f.notes {
		p.Notes = append(p.Notes, notePrefix+n)
	}
	if found := f.interpret(); err == nil {
		err = found
	}
	return err
}

// stages runs all stages until ctx is canceled. A stage that cannot be measured leaves a note.
func (f *full) stages(ctx context.Context, budget time.Duration) error {
	list := []stage{
		{"cache line round trips", 0.28, true, f.measureLatency},
		{"contention for multiply-adds", 0.13, true, f.measureCompute},
		{"contention for the last-level cache", 0.11, true, f.measureCache},
		{"bandwidth between nodes", 0.08, false, f.measureNodes},
		{"peaks of sets of PUs", 0.07, false, f.measurePeaks},
		{"saturation of memory", 0.1, false, f.measureSaturation},
		{"flows between nodes", 0.05, true, f.measureFlows},
		{"barriers", 0.05, true, f.measureBarriers},
		{"sums between ranks", 0.03, true, f.measureReduces},
		{"contention for memory", 0.1, true, f.measureMemory},
	}
	spent, tell := 0.0, f.tell
	alone := f.pool.Size() == 1
	if alone {
		f.notes = append(f.notes, "one PU is allowed: figures between PUs are not measured")
	}
	for _, s := range list {
		if alone && s.between {
			continue
		}
		share, began := budget.Seconds()*s.share, time.Now()
		f.tell = func(float64, string) { tell(spent+min(share, time.Since(began).Seconds()), s.name) }
		err := s.run(ctx, began.Add(time.Duration(share*float64(time.Second))))
		switch {
		case errors.Is(err, errUnmeasured):
			f.notes = append(f.notes, s.name+": "+err.Error())
		case err != nil:
			return err
		}
		spent += share
	}
	return nil
}
