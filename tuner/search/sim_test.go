package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"sandwich/internal/num"
	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/roofline"
)

// machine is a simulated host: an analytic cost of every schedule, noise, and a clock that the
// trials advance.
type machine struct {
	threads int
	peak    float64 // FLOP/s of a thread
	bandw   float64 // B/s, shared
	l1, l2  int
	noise   float64 // relative noise of one call
	spikes  float64 // probability that a call takes twice its time
	// relative slowdown of a kernel without a spread prefetch if several row tiles read a block
	waits    float64
	rng      *rand.Rand
	clock    time.Duration
	calls    int
	distinct map[string]int
}

func newMachine(seed uint64) *machine {
	return &machine{threads: 2, peak: 190e9, bandw: 30e9, l1: 48 << 10, l2: 2 << 20, noise: 0.02, spikes: 0.03,
		rng: rand.New(rand.NewPCG(seed, 1)), distinct: map[string]int{}}
}

// exact returns the time of a schedule without noise.
func (h *machine) exact(key plans.WeightKey, columns, m int, s plans.Schedule) float64 {
	k := MicroKernel{s.Kernel, s.Widen}
	bk := s.BK
	if bk == 0 {
		bk = key.K
	}
	rows, cols := num.CeilDiv(m, s.BM), num.CeilDiv(columns, s.BN)
	slices := rows * cols
	waves := float64(num.CeilDiv(slices, h.threads))
	if s.WaysM > 0 {
		waves = float64(num.CeilDiv(rows, s.WaysM) * num.CeilDiv(cols, s.WaysN))
	}
	eff := 1 / (k.score(m) * 32) // 1: two vectors of 16 multiply-adds per cycle
	if strip := 4 * bk * s.Kernel.NR; strip > h.l1 {
		eff *= math.Max(0.5, float64(h.l1)/float64(strip))
	}
	if slice := 4 * bk * (s.BN + min(s.BM, m)); slice > h.l2 {
		eff *= math.Max(0.6, float64(h.l2)/float64(slice))
	}
	passes := num.CeilDiv(key.K, bk)
	work := 2 * float64(m) / float64(rows) * float64(s.BN) * float64(key.K)
	// A pass is one call of the kernel including reading and writing its part of C.
	compute := waves * (work/(h.peak*eff) + float64(passes)*0.2e-6)
	bits := float64(32)
	if t, err := microkernel.ParseWeightType(key.Type); err == nil {
		bits = 8 * float64(t.RowBytes(t.Block())) / float64(t.Block())
	}
	stream := float64(columns) * float64(key.K) * bits / 8 / h.bandw
	stream *= 1 + 0.1*float64(rows-1)/float64(rows) // panels are read again from a farther cache
	total := math.Max(compute, stream) + 3e-6
	if !s.Kernel.Spread && m > s.Kernel.MR {
		total *= 1 + h.waits
	}
	return total
}

func (h *machine) Time(t Trial) (Sample, error) {
	if t.Schedule.BM%t.Schedule.Kernel.MR != 0 || t.Schedule.BN%t.Schedule.Kernel.NR != 0 {
		return Sample{}, fmt.Errorf("illegal schedule %s", t.Schedule)
	}
	h.calls++
	h.distinct[fmt.Sprint(t.M, t.Schedule)]++
	h.clock += 200 * time.Microsecond // building the kernel
	exact := h.exact(t.Key, t.Columns, t.M, t.Schedule)
	return t.Limit.Repeat(func() (float64, error) {
		x := exact * math.Exp(h.noise*h.rng.NormFloat64())
		if h.rng.Float64() < h.spikes {
			x *= 2
		}
		h.clock += time.Duration(x * 1e9)
		return x, nil
	})
}

func (h *machine) ceiling() roofline.Ceiling {
	return roofline.Ceiling{Bandwidth: h.bandw, Targets: []roofline.Target{{Name: "cores",
		Peak: h.peak * float64(h.threads)}}}
}

// problem returns a search on the machine with an incumbent that is legal but slow.
func (h *machine) problem(key plans.WeightKey, limit int, e Effort) Problem {
	t, err := microkernel.ParseWeightType(key.Type)
	if err != nil {
		panic(err)
	}
	host := microkernel.HasAVX2 | microkernel.HasAVX512
	return Problem{
		Phase: "prefill", Key: key, Compute: microkernel.ComputeF32, Threads: h.threads,
		Anchors: AnchorLengths(limit, e.Octave),
		Kernels: Candidates(host, microkernel.AVX512, microkernel.ComputeF32, t), Ways: Polymerizations(h.threads),
		Ceiling: h.ceiling(),
		CacheL1: h.l1, CacheL2: h.l2,
		Incumbent: func(m int) plans.Schedule {
			spec := microkernel.Spec{ISA: microkernel.AVX512, B: t, MR: 4, NR: 16, KU: 8}
			return plans.Schedule{Kernel: spec, BM: 4, BN: 64, BK: 256}
		},
	}
}

func (h *machine) options(e Effort, budget time.Duration) Options {
	return Options{Effort: e, Seed: 7, Budget: budget, Clock: func() time.Duration { return h.clock }}
}

// bestExact returns the least exact time over every micro-kernel, the grid of slices and all
// schemes.
func (h *machine) bestExact(p *Problem, m int) float64 {
	best := math.Inf(1)
	for _, k := range p.Kernels {
		s := newSpace(p, k, m, p.Key.N)
		for _, c := range append(s.grid(), s.guess(h.l1, h.l2)) {
			for _, w := range p.Ways {
				best = min(best, h.exact(p.Key, p.Key.N, m, s.scheme(c, w)))
			}
		}
	}
	return best
}
