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

// PortFigures is how many instructions the first PU makes in a second: roofline.PortRates, which
// says more of them.
type PortFigures struct {
	Alone    [microkernel.InstructionClasses]float64
	Together [microkernel.InstructionClasses][microkernel.InstructionClasses]float64
}

// Ports is how many instructions of each class, and of two classes that share ports, the first PU
// makes in a second, by the best of some 15 samples of 1 ms taken in turn; 0 for classes that it
// has no instruction of. `bench gemm` makes port roofs of them. It fails where Measure does.
func Ports(ctx context.Context, p *profiles.Profile, isa microkernel.ISA) (rates PortFigures, err error) {
	pus := p.FirstPUs(1)
	if len(pus) == 0 {
		return rates, errNoPU
	}
	worker, err := pool.New(pus, pool.Options{Pin: true})
	if err != nil {
		return rates, fmt.Errorf("calibrate: %w", err)
	}
	defer worker.Close()
	s := portSampler{bench: newBench(worker, p), isa: isa}
	for c := range microkernel.InstructionClasses {
		s.add(c)
	}
	if err := s.sample(ctx); err != nil {
		return rates, err
	}
	for i, mix := range s.mixes {
		rates.Alone[mix[0]] = s.best(i)
	}
	pairs := portSampler{bench: s.bench, isa: isa}
	for _, mix := range rates.pairs() {
		pairs.add(mix...)
	}
	if err := pairs.sample(ctx); err != nil {
		return rates, err
	}
	for i, mix := range pairs.mixes {
		rates.together(mix, pairs.best(i))
	}
	return rates, nil
}

// pairs are mixes of each two classes that may share ports, in about the proportion of their rates,
// so that neither is what the other waits for; the faster one is first, as often as it is needed.
func (r *PortFigures) pairs() (mixes [][]microkernel.InstructionClass) {
	const most = 4
	for a := range microkernel.InstructionClasses {
		for b := range a {
			loads := b == microkernel.LoadInstruction && a == microkernel.WordInstruction
			if !(loads || a.Arithmetic() && b.Arithmetic()) || !(r.Alone[a] > 0) || !(r.Alone[b] > 0) {
				continue
			}
			fast, slow := a, b
			if r.Alone[b] > r.Alone[a] {
				fast, slow = b, a
			}
			n := int(min(most, math.Round(r.Alone[fast]/r.Alone[slow])))
			mixes = append(mixes, append(slices.Repeat([]microkernel.InstructionClass{fast}, n), slow))
		}
	}
	return mixes
}

// together notes at which rate the instructions of a mix of pairs were made: nothing where one of
// its classes is made about as fast as alone.
func (r *PortFigures) together(mix []microkernel.InstructionClass, rate float64) {
	const unhindered = 0.95
	fast, slow := mix[0], mix[len(mix)-1]
	each := rate / float64(len(mix)) // the rate of slow
	if each*float64(len(mix)-1) >= unhindered*r.Alone[fast] || each >= unhindered*r.Alone[slow] {
		return
	}
	r.Together[fast][slow], r.Together[slow][fast] = rate, rate
}

// portSampler takes the rates of mixes of instructions in turn.
type portSampler struct {
	*bench
	isa     microkernel.ISA
	mixes   [][]microkernel.InstructionClass
	figures []*figure
}

// add asks for a mix, unless there is no such instruction.
func (s *portSampler) add(mix ...microkernel.InstructionClass) {
	k, err := microkernel.NewPort(s.isa, microkernel.Host(), mix...)
	if err != nil {
		return
	}
	s.mixes = append(s.mixes, mix)
	s.figures = append(s.figures, &figure{ceiling: profiles.Ceiling{Kind: profiles.Compute, ISA: s.isa.String(),
		Type: fmt.Sprint(mix), PUs: 1}, workers: firstWorkers(1), work: peakWork(k, shortSample)})
}

func (s *portSampler) sample(ctx context.Context) error {
	o := Options{Samples: shortSamples, Budget: time.Duration(2*len(s.figures)*shortSamples) * shortSample}
	if err := s.bench.sample(ctx, s.figures, o, time.Now()); err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	return nil
}

func (s *portSampler) best(i int) float64 { return slices.Max(append(s.figures[i].samples, 0)) }
