package calibrate

import (
	"context"
	"fmt"
	"time"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/runtime/pool"
)

// Ports is how many instructions of each class the first PU makes in a second, by the best of some
// 15 samples of 1 ms taken in turn; 0 for classes that it has no instruction of. `bench gemm` makes
// port roofs of them. It fails where Measure does.
func Ports(ctx context.Context, p *profiles.Profile,
	isa microkernel.ISA) (rates [microkernel.InstructionClasses]float64, err error) {
	pus := p.FirstPUs(1)
	if len(pus) == 0 {
		return rates, errNoPU
	}
	worker, err := pool.New(pus, pool.Options{Pin: true})
	if err != nil {
		return rates, fmt.Errorf("calibrate: %w", err)
	}
	defer worker.Close()
	b := newBench(worker, p)
	var figures []*figure
	var classes []microkernel.InstructionClass
	for c := range microkernel.InstructionClasses {
		k, err := microkernel.NewPort(isa, c, microkernel.Host())
		if err != nil {
			continue // no such instruction
		}
		classes = append(classes, c)
		figures = append(figures, &figure{ceiling: profiles.Ceiling{Kind: profiles.Compute, ISA: isa.String(),
			Type: c.String(), PUs: 1}, workers: firstWorkers(1), work: peakWork(k, shortSample)})
	}
	o := Options{Samples: shortSamples, Budget: 20 * shortSamples * shortSample}
	if err := b.sample(ctx, figures, o, time.Now()); err != nil {
		return rates, fmt.Errorf("calibrate: %w", err)
	}
	for i, f := range figures {
		for _, s := range f.samples {
			rates[classes[i]] = max(rates[classes[i]], s)
		}
	}
	return rates, nil
}
