package calibrate

import (
	"context"
	"fmt"
	"time"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/runtime/pool"
)

// A short measurement: some 20 ms for each figure.
const (
	shortSample  = time.Millisecond
	shortSamples = 15
)

// Rates is the multiply-add peaks of one instruction set in some data types, what its attention
// reaches by each dot product where there are several, what its vectors load from L1, what it reads
// of weights from memory, and how many instructions of each class it makes, on the first PU alone
// and in turn, so that clocks and neighbours bear on all alike: for choices between them that
// cannot wait for Measure. What the CPU lacks is left out. It fails where Measure does.
// plans/selection asks before it makes an untuned plan.
func Rates(ctx context.Context, p *profiles.Profile, isa microkernel.ISA, types ...string) ([]profiles.Ceiling,
	error) {
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
		var first []*figure
		first, err = b.firstReads(isa)
		figures = append(figures, first...)
	}
	if err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	// Three samples of each are taken whatever the budget says; this one is spent only where the PU
	// is taken away.
	err = b.sample(ctx, figures, Options{Samples: shortSamples, Budget: 15 * shortSamples * shortSample}, time.Now())
	if err != nil {
		return replaced(nil, figures), err
	}
	ports, err := b.samplePorts(ctx, isa, portSamples)
	return replaced(nil, append(figures, ports...)), err
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

// firstReads are what one worker loads from L1, and reads of weights from memory.
func (b *bench) firstReads(isa microkernel.ISA) ([]*figure, error) {
	panels, err := b.panelFigures(isa)
	if err == nil {
		err = b.alone()
	}
	if err != nil {
		return nil, err
	}
	load, err := b.loads()
	return append([]*figure{load}, panels...), err
}

// loads is what one worker loads from L1, each sample about as long as a short one of a peak. The
// worker needs a buffer.
func (b *bench) loads() (*figure, error) {
	loader, err := microkernel.NewLoader(microkernel.Host().Best(), microkernel.Host())
	if err != nil {
		return nil, err
	}
	l := b.firstLevel()
	l.name = profiles.L1Loads
	return b.readFigure(loader, l, 1, 0), nil
}

// firstLevel is most of the L1 of a core.
func (b *bench) firstLevel() level { return level{"l1", b.cacheSizes().l1 / 4 * 3 &^ 1023, 64 << 20} }

// alone maps the buffer of a worker that measures no other bandwidth than that of L1.
func (b *bench) alone() (err error) {
	bytes := b.firstLevel().bytes
	if b.buffer, err = b.alloc(bytes, false); err == nil {
		b.buffer.Touch(0, bytes)
	}
	return err
}
