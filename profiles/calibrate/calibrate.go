package calibrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/runtime/pool"
)

// Options of Measure. The zero value is the quick probe.
type Options struct {
	// 0: 1.5 s with the preparation; at least three samples of each figure are taken whatever it
	// says
	Budget   time.Duration
	Samples  int                                      // of each figure at most; 0: 9
	Progress func(done, total float64, figure string) // called between samples, never at the same time; may be nil
}

const (
	// QuickBudget is the time of the quick probe.
	QuickBudget = 1500 * time.Millisecond

	defaultSamples = 9
	leastSamples   = 3
)

var errNoPU = errors.New("calibrate: this process may use no PU")

// Measure replaces the measured ceilings of a profile of this machine: the multiply-add peak of
// every instruction set and data type, and read bandwidth of caches and memory, for 1 to n PUs.
// Quoted and assumed figures of other kinds stay. When ctx ends it stops between two samples and
// keeps what it has, returning ctx's error. It fails when a worker cannot be bound to its PU:
// figures of unpinned threads say nothing about the machine.
func Measure(ctx context.Context, p *profiles.Profile, o Options) error {
	began := time.Now()
	pus := p.RankedPUs()
	if len(pus) == 0 {
		return errNoPU
	}
	workers, err := pool.New(pus, pool.Options{Pin: true})
	if err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	defer workers.Close()
	b := newBench(workers, p)
	defer b.free()
	figures, err := b.figures()
	if err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	if err = b.sample(ctx, figures, o, began); err == nil {
		var ports []*figure
		ports, err = b.samplePorts(ctx, microkernel.Host().Best(), min(portSamples, cmp.Or(o.Samples, portSamples)))
		figures = append(figures, ports...)
	}
	p.Ceilings = replaced(p.Ceilings, figures)
	p.Probe = newProbe("quick", began, err)
	p.Notes = slices.DeleteFunc(p.Notes, func(n string) bool { return strings.HasPrefix(n, notePrefix) })
	for _, n := range slices.Concat(b.notes, b.sharedNote(), busyNotes(p.Ceilings)) {
		p.Notes = append(p.Notes, notePrefix+n)
	}
	if note := workers.Note(); note != "" {
		p.Notes = append(p.Notes, notePrefix+note)
	}
	return err
}

// notePrefix marks the notes of a measurement, which the next one replaces.
const notePrefix = "measurement: "

// busyLimit is the noise of a figure from which the profile says that something else was running.
const busyLimit = 0.1

// busyNotes names the noisiest figure where it is noisy.
func busyNotes(ceilings []profiles.Ceiling) []string {
	var worst profiles.Ceiling
	for _, c := range ceilings {
		if c.Measured() && c.Noise > worst.Noise {
			worst = c
		}
	}
	if worst.Noise < busyLimit {
		return nil
	}
	return []string{fmt.Sprintf("something else was running: %s with %d PUs varied by %.0f %% around its "+
		"median; measure again on a quiet machine", worst.Name(), worst.PUs, worst.Noise*100)}
}

// sample takes samples of all figures in passes until each has enough or the budget is spent. In a
// pass the figures of one set of workers follow each other, and a first round of them is thrown
// away: it warms clocks and caches, and a hypervisor finds cores for those that slept. Samples of
// one and two PUs in turn had both virtual PUs on one core in most pairs of two probes of six.
func (b *bench) sample(ctx context.Context, figures []*figure, o Options, began time.Time) error {
	o.Budget, o.Samples = cmp.Or(max(0, o.Budget), QuickBudget), cmp.Or(max(0, o.Samples), defaultSamples)
	sets := bySet(figures)
	p := progress{tell: o.Progress, all: o.Samples * len(figures)}
	sampling := time.Now()
	for taken := 0; taken < o.Samples; taken += leastSamples {
		if taken > 0 && time.Since(began)+time.Since(sampling)*leastSamples/time.Duration(taken) > o.Budget {
			return nil // one more pass would not fit
		}
		for _, set := range sets {
			if taken == 0 || len(sets) > 1 {
				if err := b.round(ctx, set, p.about, func(*figure, float64) {}); err != nil {
					return err
				}
			}
			for range min(leastSamples, o.Samples-taken) {
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

func (f *figure) add(rate float64) { f.samples = append(f.samples, rate) }

// bySet parts figures by the workers that they are of, the fewest first.
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

// progress is how many samples were taken.
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

// replaced is the old ceilings without those that were measured, and the new ones.
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
