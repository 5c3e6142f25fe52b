package calibrate

import (
	"context"
	"fmt"
	"time"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/runtime/pool"
)

// A short measurement of peaks: some 35 ms for two of them.
const (
	shortSample  = time.Millisecond
	shortSamples = 15
)

// Peaks is the multiply-add peaks of one instruction set in some data types, on the first PU alone
// and in turn, so that clocks and neighbours bear on all alike: for a choice between them that
// cannot wait for Measure. What the CPU lacks is left out. It fails where Measure does.
func Peaks(ctx context.Context, p *profiles.Profile, isa microkernel.ISA, types ...string) ([]profiles.Ceiling, error) {
	pus := p.FirstPUs(1)
	if len(pus) == 0 {
		return nil, errNoPU
	}
	worker, err := pool.New(pus, pool.Options{Pin: true})
	if err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	defer worker.Close()
	b := newBench(worker, p)
	var figures []*figure
	for _, s := range microkernel.PeakSpecs(microkernel.Host()) {
		for _, t := range types {
			if s != (microkernel.PeakSpec{ISA: isa, Type: t}) {
				continue
			}
			more, _, err := b.peakFigures(s, shortSample)
			if err != nil {
				return nil, fmt.Errorf("calibrate: %w", err)
			}
			figures = append(figures, more...)
		}
	}
	// Three samples of each are taken whatever the budget says; this one is spent only where the PU
	// is taken away.
	err = b.sample(ctx, figures, Options{Samples: shortSamples, Budget: 10 * shortSamples * shortSample}, time.Now())
	return replaced(nil, figures), err
}
