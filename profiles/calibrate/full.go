package calibrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"sandwich/profiles"
	"sandwich/runtime/pool"
)

// FullOptions of Full. The zero value is the full probe.
type FullOptions struct {
	Budget time.Duration // 0: FullBudget of the allowed PUs
	// seconds; called between samples, never at the same time; may be nil
	Progress func(done, total float64, figure string)

	// Tests set these: the most samples of each figure, 0 for as many as the budget has time for,
	// and the time after which a round trip between PUs is lost, 0 for lostAfter.
	samples  int
	patience time.Duration
}

// FullBudget is the time of the measurements of a full probe on that many PUs, without the
// preparation of memory: 15 s on 2 PUs, 110 s on 192 and on any larger machine. Where not all pairs
// fit, whole domains of the machine are sampled. A machine that is disturbed, so that not every
// figure has a sample by then, may take as long again; what is missing after that stays unmeasured
// and is noted.
func FullBudget(pus int) time.Duration {
	return min(14*time.Second+time.Duration(pus)*time.Second/2, 110*time.Second)
}

// full is a full probe under way.
type full struct {
	*bench
	memory   *memory
	tell     func(seconds float64, figure string)
	samples  int           // of each trial at most
	patience time.Duration // after which a round trip is lost
	matrices []profiles.Matrix
	sets     []profiles.SetFigure
	solo     map[int][]float64 // multiply-add rates of single PUs, by PU
}

func newFull(workers *pool.Pool, p *profiles.Profile) *full {
	return &full{bench: newBench(workers, p), tell: func(float64, string) {}, samples: mostSamples, patience: lostAfter,
		solo: map[int][]float64{}}
}

// stage is one part of the probe with its share of the budget.
type stage struct {
	name    string
	share   float64
	between bool // it takes two PUs
	run     func(ctx context.Context, until time.Time) error
}

// errUnmeasured ends a stage that cannot be measured here; its text becomes a note.
var errUnmeasured = errors.New("not measured")

// Full measures everything that Measure does, and the structure of the machine: cache-line round
// trips between PUs, contention of pairs for the multiply-add units, for last-level caches and for
// memory, bandwidth from each NUMA node to each and of several such flows at once, peaks by class
// and set, saturation curves, barriers and all-reduces. Structure found in the matrices is added to
// the profile as candidates for group, speeds that differ as colors. It runs on allowed PUs only.
// When ctx ends it stops between two samples, keeps what it has, marks the profile as partial and
// returns ctx's error.
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
	roofs := o.Budget * 15 / 100
	err := Measure(ctx, p, Options{Budget: roofs, Samples: cmp.Or(o.samples, 25), Progress: func(done, total float64,
		figure string) {
		tell(roofs.Seconds()*done/total, figure)
	}})
	if err == nil {
		err = structure(ctx, p, o, o.Budget-roofs, func(seconds float64, figure string) {
			tell(roofs.Seconds()+seconds, figure)
		})
	}
	p.Probe = newProbe("full", began, err)
	return err
}

// newProbe says how a measurement came about.
func newProbe(mode string, began time.Time, err error) *profiles.Probe {
	return &profiles.Probe{Mode: mode, Seconds: math.Round(time.Since(began).Seconds()*10) / 10, Partial: err != nil}
}

// structure measures what Measure does not.
func structure(ctx context.Context, p *profiles.Profile, o FullOptions, budget time.Duration,
	tell func(float64, string)) error {
	workers, err := pool.New(p.Allowed().Slice(), pool.Options{Pin: true})
	if err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	defer workers.Close()
	f := newFull(workers, p)
	f.tell, f.samples, f.patience = tell, cmp.Or(o.samples, mostSamples), cmp.Or(o.patience, lostAfter)
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

// stages runs one after the other until ctx ends. A stage that cannot be measured here leaves a
// note.
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
		f.notes = append(f.notes, "one PU is allowed: there is nothing between PUs to measure")
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
