package calibrate

import (
	"context"
	"fmt"
	"time"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/runtime/pool"
)

// Rates measures one PU for decisions that cannot wait for Measure: the multiply-add peaks of an
// instruction set in some data types, attention with each dot product if there are several, L1
// loads, reads of weights from memory, and instruction throughput by class. Samples are
// interleaved, so that disturbances affect all figures. Unsupported figures are left out. Errors
// are those of Measure. plans/selection calls it before it makes an untuned plan.
func Rates(ctx context.Context, p *profiles.Profile, isa microkernel.ISA, types ...string) ([]profiles.Ceiling,
	error) {
	pus := p.FirstPUs(1)
	if pus.IsEmpty() {
		return nil, errNoPU
	}
	worker, err := pool.New(pus.Slice(), pool.Options{Pin: true})
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
	if err == nil && isa == microkernel.Host().Best() { // readers use the widest instruction set
		var first []*figure
		first, err = b.firstReads(isa)
		figures = append(figures, first...)
	}
	if err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	// Three samples of each are taken regardless of the budget, which is exceeded only if the PU is
	// preempted.
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

// firstReads returns figures of the first worker's L1 loads and reads of weights.
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

// alone maps the buffer of a worker that measures only L1 bandwidth.
func (b *bench) alone() (err error) {
	bytes := b.firstLevel().bytes
	if b.buffer, err = b.alloc(bytes, false); err == nil {
		b.buffer.Touch(0, bytes)
	}
	return err
}
