package calibrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"sandwich/profiles"
)

// Options configures Measure. The zero value selects the quick probe.
type Options struct {
	// total duration; 0: QuickBudget. At least three samples of each figure are taken regardless.
	Budget   time.Duration
	Samples  int                                      // maximum per figure; 0: 9
	Progress func(done, total float64, figure string) // called between samples, not concurrently; may be nil
}

const (
	// QuickBudget is the time of the quick probe.
	QuickBudget = 1500 * time.Millisecond

	defaultSamples = 9
	minSamples     = 3
)

var errNoPU = errors.New("calibrate: no PU is available to this process")

// sample takes samples of all figures until each has enough or the budget is spent. Figures with
// the same workers are sampled one after another. A first round is discarded, since it warms clocks
// and caches and wakes virtual CPUs.
func (b *bench) sample(ctx context.Context, figures []*figure, o Options, began time.Time) error {
	o.Budget, o.Samples = cmp.Or(max(0, o.Budget), QuickBudget), cmp.Or(max(0, o.Samples), defaultSamples)
	sets := bySet(figures)
	p := progress{tell: o.Progress, all: o.Samples * len(figures)}
	sampling := time.Now()
	for taken := 0; taken < o.Samples; taken += minSamples {
		if taken > 0 && time.Since(began)+time.Since(sampling)*minSamples/time.Duration(taken) > o.Budget {
			return nil // another pass would exceed the budget
		}
		for _, set := range sets {
			if taken == 0 || len(sets) > 1 {
				if err := b.round(ctx, set, p.about, func(*figure, float64) {}); err != nil {
					return err
				}
			}
			for range min(minSamples, o.Samples-taken) {
				if err := b.round(ctx, set, p.next, (*figure).add); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// round takes one sample of each figure.
func (b *bench) round(ctx context.Context, figures []*figure, tell func(*figure), keep func(*figure, float64)) error {
	for _, f := range figures {
		if err := ctx.Err(); err != nil {
			return err
		}
		tell(f)
		rate, err := b.run(f)
		if err != nil {
			return fmt.Errorf("calibrate %s: %w", f.ceiling.Name(), err)
		}
		keep(f, rate)
	}
	return nil
}

// add appends a sample.
func (f *figure) add(rate float64) { f.samples = append(f.samples, rate) }

// bySet groups figures by their workers, the smallest sets first.
func bySet(figures []*figure) (out [][]*figure) {
	list := slices.Clone(figures)
	slices.SortStableFunc(list, func(a, b *figure) int {
		return cmp.Or(len(a.workers)-len(b.workers), slices.Compare(a.workers, b.workers))
	})
	for i, f := range list {
		if i == 0 || !slices.Equal(f.workers, list[i-1].workers) {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], f)
	}
	return out
}

// progress counts samples and reports them.
type progress struct {
	tell      func(done, total float64, figure string)
	done, all int
}

func (p *progress) about(f *figure) {
	if p.tell != nil {
		p.tell(float64(p.done), float64(p.all), f.ceiling.Name())
	}
}

func (p *progress) next(f *figure) {
	p.about(f)
	p.done++
}

// replaced returns the ceilings of old that were not measured, and the new figures.
func replaced(old []profiles.Ceiling, figures []*figure) []profiles.Ceiling {
	var out []profiles.Ceiling
	for _, c := range old {
		if !c.Measured() {
			out = append(out, c)
		}
	}
	for _, f := range figures {
		if len(f.samples) > 0 {
			c := f.ceiling
			c.Figure = profiles.NewFigure(c.Unit, f.samples)
			out = append(out, c)
		}
	}
	return out
}

// newProbe returns the record of a measurement.
func newProbe(mode string, began time.Time, err error) *profiles.Probe {
	return &profiles.Probe{Mode: mode, Seconds: math.Round(time.Since(began).Seconds()*10) / 10, Partial: err != nil}
}

// Duration and number of samples of a short measurement.
const (
	shortSample  = time.Millisecond
	shortSamples = 15
)
