package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/runtime/pool"
)

// Ports measures the instructions per second of each class, and of interleaved mixes of two
// classes, on the first PU. It returns ceilings for roofline.PortsOf and leaves out classes without
// an instruction. `bench gemm` derives port ceilings from them. Errors are those of Measure.
func Ports(ctx context.Context, p *profiles.Profile, isa microkernel.ISA) ([]profiles.Ceiling, error) {
	pus := p.FirstPUs(1)
	if pus.IsEmpty() {
		return nil, errNoPU
	}
	worker, err := pool.New(pus.Slice(), pool.Options{Pin: true})
	if err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	defer worker.Close()
	figures, err := newBench(worker, p).samplePorts(ctx, isa, shortSamples)
	return replaced(nil, figures), err
}

// portSamples is the number of samples of each mix that the probe takes.
const portSamples = 5

// samplePorts measures the rates of all classes, then of mixes of two.
func (b *bench) samplePorts(ctx context.Context, isa microkernel.ISA, samples int) ([]*figure, error) {
	var alone, pairs []*figure
	var rates [microkernel.InstructionClasses]float64
	for c := range microkernel.InstructionClasses {
		if f := b.portFigure(isa, c); f != nil {
			alone = append(alone, f)
		}
	}
	if err := b.samplePortsOf(ctx, alone, samples); err != nil {
		return alone, err
	}
	for _, f := range alone {
		rates[f.ceiling.PortMix()[0]] = slices.Max(append(f.samples, 0))
	}
	for _, mix := range portPairs(&rates) {
		if f := b.portFigure(isa, mix...); f != nil {
			pairs = append(pairs, f)
		}
	}
	err := b.samplePortsOf(ctx, pairs, samples)
	return append(alone, pairs...), err
}

func (b *bench) samplePortsOf(ctx context.Context, figures []*figure, samples int) error {
	o := Options{Samples: samples, Budget: time.Duration(2*len(figures)*(samples+1)) * shortSample}
	if err := b.sample(ctx, figures, o, time.Now()); err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	return nil
}

// portFigure returns a figure of a mix of instruction classes, or nil if the instruction set lacks
// one of them.
func (b *bench) portFigure(isa microkernel.ISA, mix ...microkernel.InstructionClass) *figure {
	k, err := microkernel.NewPort(isa, microkernel.Host(), mix...)
	if err != nil {
		return nil
	}
	worker := firstWorkers(1)
	return &figure{ceiling: profiles.Ceiling{Kind: profiles.Compute, ISA: isa.String(), Type: profiles.PortType(mix),
		PUs: 1, CPUs: b.pusOf(worker), Figure: profiles.Figure{Unit: "instructions/s"}}, workers: worker,
		work: peakWork(k, shortSample)}
}

// portPairs returns mixes of two classes that may share ports, approximately in the ratio of their
// rates so that neither dominates. The faster one comes first, as often as needed.
func portPairs(rates *[microkernel.InstructionClasses]float64) (mixes [][]microkernel.InstructionClass) {
	const limit = 4
	for a := range microkernel.InstructionClasses {
		for b := range a {
			loads := b == microkernel.LoadInstruction && a == microkernel.WordInstruction
			if !(loads || a.Arithmetic() && b.Arithmetic()) || !(rates[a] > 0) || !(rates[b] > 0) {
				continue
			}
			fast, slow := a, b
			if rates[b] > rates[a] {
				fast, slow = b, a
			}
			n := int(min(limit, math.Round(rates[fast]/rates[slow])))
			mixes = append(mixes, append(slices.Repeat([]microkernel.InstructionClass{fast}, n), slow))
		}
	}
	return mixes
}
