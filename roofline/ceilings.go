package roofline

import (
	"fmt"
	"math"
	"slices"

	"sandwich/profiles"
)

// Sampled is a ceiling as a function of the PUs at work, from the points that a profile holds.
type Sampled struct {
	pus   []int // ascending
	rates []float64
}

// At is the ceiling with n PUs: between two points linear, which is exact for compute and near for bandwidth; below the first point proportional to n; beyond the last
// point flat, since nothing says that more PUs are faster.
func (s Sampled) At(n int) float64 {
	if len(s.pus) == 0 || n <= 0 {
		return 0
	}
	if n <= s.pus[0] {
		return s.rates[0] * float64(n) / float64(s.pus[0])
	}
	i, found := slices.BinarySearch(s.pus, n)
	switch {
	case found:
		return s.rates[i]
	case i == len(s.pus):
		return s.rates[i-1]
	}
	share := float64(n-s.pus[i-1]) / float64(s.pus[i]-s.pus[i-1])
	return s.rates[i-1] + share*(s.rates[i]-s.rates[i-1])
}

// Known tells whether the profile had any point.
func (s Sampled) Known() bool { return len(s.pus) > 0 }

// Saturation is the least number of PUs that reach the given share of the highest rate: from there on, more PUs in decode buy nothing. It is 0 for an unknown ceiling.
func (s Sampled) Saturation(share float64) int {
	top := 0.0
	for _, r := range s.rates {
		top = math.Max(top, r)
	}
	for i, r := range s.rates {
		if r >= share*top {
			return s.pus[i]
		}
	}
	return 0
}

// ComputeCeiling is the multiply-add peak of an instruction set (avx512, avx2, neon, go) on a data type (f32, int8, bf16), in FLOP/s or OP/s.
func ComputeCeiling(p *profiles.Profile, isa, typ string) Sampled {
	return sampled(p, func(c *profiles.Ceiling) bool {
		return c.Kind == profiles.Compute && c.Device == "" && c.ISA == isa && c.Type == typ
	})
}

// BandwidthCeiling is the read bandwidth of a level (l1, l2, l3, memory) in B/s.
func BandwidthCeiling(p *profiles.Profile, level string) Sampled {
	return sampled(p, func(c *profiles.Ceiling) bool {
		return c.Kind == profiles.Bandwidth && c.Device == "" && c.Level == level
	})
}

func sampled(p *profiles.Profile, match func(*profiles.Ceiling) bool) Sampled {
	byPUs := map[int]float64{}
	for i := range p.Ceilings {
		if c := &p.Ceilings[i]; match(c) {
			byPUs[c.PUs] = math.Max(byPUs[c.PUs], c.Median)
		}
	}
	var s Sampled
	for n := range byPUs {
		s.pus = append(s.pus, n)
	}
	slices.Sort(s.pus)
	for _, n := range s.pus {
		s.rates = append(s.rates, byPUs[n])
	}
	return s
}

// FromProfile is the roof of n PUs: the shared memory bandwidth, the vector units first, and the profile's devices (sme, gpu, npu) behind them; a mixed ceiling bounds what they reach
// together. It fails when the profile lacks the memory bandwidth or the vector ceiling, naming what to do.
func FromProfile(p *profiles.Profile, isa, typ string, n int) (Roof, error) {
	bw, peak := BandwidthCeiling(p, "memory"), ComputeCeiling(p, isa, typ)
	if !bw.Known() || !peak.Known() {
		return Roof{}, fmt.Errorf("the profile has no ceiling of memory and of %s/%s; measure them with `sandwich probe --measure quick`", isa, typ)
	}
	r := Roof{Bandwidth: bw.At(n), Targets: []Target{{Name: isa + "/" + typ, Peak: peak.At(n)}}}
	together := map[int]float64{} // by the number of units at once
	for _, c := range p.Ceilings {
		switch units := c.Units(); {
		case c.Kind != profiles.Compute || c.Device == "" || c.Type != typ:
		case len(units) > 1:
			together[len(units)] = math.Max(together[len(units)], c.Median)
		default:
			r.Targets = append(r.Targets, Target{Name: c.Name(), Peak: c.Median})
		}
	}
	r.Mixed = together[len(r.Targets)] // of fewer units it says nothing about all
	return r, nil
}

// ByType is the roof of the vector units of n PUs for each of some data types.
func ByType(p *profiles.Profile, isa string, types []string, n int) (map[string]Roof, error) {
	out := map[string]Roof{}
	for _, typ := range types {
		r, err := FromProfile(p, isa, typ, n)
		if err != nil {
			return nil, err
		}
		r.Targets, r.Mixed = r.Targets[:1], 0
		out[typ] = r
	}
	return out, nil
}
