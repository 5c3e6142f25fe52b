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

// Ports is how many instructions of each class, and of two classes in turn, the first PU makes in a
// second, as ceilings that roofline.PortsOf reads; none of classes that it has no instruction of.
// `bench gemm` makes port roofs of them. It fails where Measure does.
func Ports(ctx context.Context, p *profiles.Profile, isa microkernel.ISA) ([]profiles.Ceiling, error) {
	pus := p.FirstPUs(1)
	if len(pus) == 0 {
		return nil, errNoPU
	}
	worker, err := pool.New(pus, pool.Options{Pin: true})
	if err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	defer worker.Close()
	figures, err := newBench(worker, p).samplePorts(ctx, isa, shortSamples)
	return replaced(nil, figures), err
}

// portSamples is how many samples of 1 ms the probe takes of each of some thirty mixes: the best
// counts, and all of them are some 0.2 s.
const portSamples = 5

// samplePorts takes the rates of all classes in turn, and then those of mixes of two.
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

// portFigure is the rate of a mix of instructions, nil where there is no such instruction.
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

// portPairs are mixes of each two classes that may share ports, in about the proportion of their
// rates, so that neither is what the other waits for; the faster one is first, as often as it is
// needed.
func portPairs(rates *[microkernel.InstructionClasses]float64) (mixes [][]microkernel.InstructionClass) {
	const most = 4
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
			n := int(min(most, math.Round(rates[fast]/rates[slow])))
			mixes = append(mixes, append(slices.Repeat([]microkernel.InstructionClass{fast}, n), slow))
		}
	}
	return mixes
}
