package calibrate

import (
	"context"
	"fmt"
	"time"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/runtime/mem"
	"sandwich/runtime/pool"
)

// A short measurement: some 20 ms for each figure.
const (
	shortSample  = time.Millisecond
	shortSamples = 15
)

// Rates is the multiply-add peaks of one instruction set in some data types, what its attention
// reaches by each dot product where there are several, and what its vectors read from L1, on the
// first PU alone and in turn, so that clocks and neighbours bear on all alike:
// for choices between them that cannot wait for Measure. What the CPU lacks is left out. It fails
// where Measure does. plans/choose asks before it makes an untuned plan.
func Rates(ctx context.Context, p *profiles.Profile, isa microkernel.ISA, types ...string) ([]profiles.Ceiling, error) {
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
	defer b.free()
	figures, err := b.shortPeaks(isa, types)
	var attend []*figure
	if err == nil {
		attend, err = b.attendFigures(isa, shortSample)
		figures = append(figures, attend...)
	}
	if err == nil && isa == microkernel.Host().Best() { // readers are of the widest
		var read *figure
		read, err = b.firstLevel()
		figures = append(figures, read)
	}
	if err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	// Three samples of each are taken whatever the budget says; this one is spent only where the PU
	// is taken away.
	err = b.sample(ctx, figures, Options{Samples: shortSamples, Budget: 10 * shortSamples * shortSample}, time.Now())
	return replaced(nil, figures), err
}

func (b *bench) shortPeaks(isa microkernel.ISA, types []string) (figures []*figure, err error) {
	for _, s := range microkernel.PeakSpecs(microkernel.Host()) {
		for _, t := range types {
			if s != (microkernel.PeakSpec{ISA: isa, Type: t}) {
				continue
			}
			more, _, err := b.peakFigures(s, shortSample)
			if err != nil {
				return nil, err
			}
			figures = append(figures, more...)
		}
	}
	return figures, nil
}

// firstLevel is reads of L1 by one worker, about as long as a short sample of a peak.
func (b *bench) firstLevel() (*figure, error) {
	reader, err := microkernel.NewReader(microkernel.Host().Best(), microkernel.Host())
	if err != nil {
		return nil, err
	}
	l := level{"l1", b.cacheSizes().l1 / 4 * 3 &^ 1023, 64 << 20}
	if b.buffer, err = mem.Alloc(l.bytes, mem.Options{Node: mem.AnyNode}); err != nil {
		return nil, err
	}
	b.buffer.Touch(0, l.bytes)
	return b.readFigure(l, 1, b.readWork(reader, l, 0)), nil
}
