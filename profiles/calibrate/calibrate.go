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
	for _, n := range append(b.notes, busyNotes(p.Ceilings)...) {
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

// sample takes samples round by round until each figure has enough or the budget is spent. The
// first round warms clocks and caches and is thrown away.
func (b *bench) sample(ctx context.Context, figures []*figure, o Options, began time.Time) error {
	if o.Budget <= 0 {
		o.Budget = QuickBudget
	}
	if o.Samples <= 0 {
		o.Samples = defaultSamples
	}
	rounds := time.Now()
	for round := 0; round <= o.Samples; round++ {
		if round > leastSamples && time.Since(began)+time.Since(rounds)/time.Duration(round) > o.Budget {
			return nil // one more round would not fit
		}
		for i, f := range figures {
			if err := ctx.Err(); err != nil {
				return err
			}
			if o.Progress != nil {
				o.Progress(float64(round*len(figures)+i), float64((o.Samples+1)*len(figures)), f.ceiling.Name())
			}
			rate, err := b.run(f)
			if err != nil {
				return fmt.Errorf("calibrate %s: %w", f.ceiling.Name(), err)
			}
			if round > 0 {
				f.samples = append(f.samples, rate)
			}
		}
	}
	return nil
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
