package model

import (
	"fmt"
	"math"
)

// Yarn is the rule of Peng et al.: YaRN: Efficient Context Window Extension of Large Language
// Models, 2023, section 3: frequencies of pairs that rotate Fast times or more within the original
// context are kept, those of pairs that rotate Slow times or less are divided by Factor, and the
// ones in between are interpolated.
type Yarn struct {
	Factor     float64
	Original   int // context before the extension, in tokens
	Fast, Slow float64
	// Log is a multiplier in a divisor of the gain: the gain is (1 + 0.1 ln(Factor)) divided by
	// (1 + 0.1 Log ln(Factor)).
	Log float64
}

// check returns an error for values outside the rule.
func (y *Yarn) check() error {
	if !(y.Factor >= 1) || math.IsInf(y.Factor, 0) || y.Original < 1 || !(y.Fast > y.Slow) || !(y.Slow > 0) ||
		!(y.Log >= 0) || math.IsInf(y.Log, 0) {
		return fmt.Errorf("invalid YaRN RoPE scaling %+v: it needs a factor of 1 or more, an original context "+
			"and beta_fast above beta_slow", *y)
	}
	return nil
}

// Gain returns the factor of cosines and sines (section 3.4).
func (y *Yarn) Gain() float64 { return y.mscale(1) / y.mscale(y.Log) }

// mscale returns 1 + 0.1*by*ln(Factor).
func (y *Yarn) mscale(by float64) float64 { return 1 + 0.1*by*math.Log(y.Factor) }

// ramp returns the weight of the original frequency of a pair, from 0 to 1; the rest is the divided
// frequency.
func (y *Yarn) ramp(pair, dim int, base float64) float64 {
	turnsAt := func(turns float64) float64 { // index of the pair that rotates so often within the original context
		return float64(dim) * math.Log(float64(y.Original)/(turns*2*math.Pi)) / (2 * math.Log(base))
	}
	low, high := max(0, math.Floor(turnsAt(y.Fast))), min(float64(dim-1), math.Ceil(turnsAt(y.Slow)))
	return 1 - min(1, max(0, (float64(pair)-low)/max(0.001, high-low)))
}

// Frequencies returns the angle in radians by which each pair rotates per position, for sequences
// of up to context positions.
func (r *Rope) Frequencies(context int) []float64 {
	factors := r.Factors
	if r.Long != nil {
		factors = r.Long.Short
		if context > r.Long.Original {
			factors = r.Long.Long
		}
	}
	out := make([]float64, r.Dim/2)
	for i := range out {
		f := math.Pow(r.Base, -float64(2*i)/float64(r.Dim))
		if factors != nil {
			f /= float64(factors.Data[i])
		}
		if r.Yarn != nil {
			keep := r.Yarn.ramp(i, r.Dim, r.Base)
			out[i] = f*keep + f/r.Yarn.Factor*(1-keep)
		} else {
			out[i] = f * r.Scale
		}
	}
	for _, pair := range r.Unrotated {
		out[pair] = 0
	}
	return out
}

// vectors returns pointers to the vectors of divisors of the angles.
func (r *Rope) vectors() []**Vector {
	out := []**Vector{&r.Factors}
	if r.Long != nil {
		out = append(out, &r.Long.Short, &r.Long.Long)
	}
	return out
}

// checkFactors removes factors that the file does not have, and returns an error for factors that
// are not positive.
func (r *Rope) checkFactors() error {
	if l := r.Long; l != nil && (l.Short == nil || l.Long == nil) {
		if l.Short != l.Long {
			return fmt.Errorf("the file has only one of the tensors rope_factors_short and rope_factors_long: " +
				"it is damaged")
		}
		r.Long = nil
	}
	for _, v := range r.vectors() {
		if *v == nil || (*v).Data == nil {
			*v = nil
			continue
		}
		for i, f := range (*v).Data {
			if !(f > 0) {
				return fmt.Errorf("%s[%d] is %v, not a positive number", (*v).Name, i, f)
			}
		}
	}
	return nil
}

// sections reads how the pairs of a rotation are divided among the axes time, height, width and a
// fourth one. In a text the first three equal the position and the fourth is 0, so that its pairs
// do not rotate. The order of pairs is that of ggml's rope, interleaved or not, also if the number
// of pairs differs from that of the file.
func (m *Metadata) sections(c *Config, interleaved bool) {
	const key = "rope.dimension_sections"
	list, ok := m.Ints(key)
	if !ok || m.from != fromFile {
		return
	}
	var of [4]int
	sum := 0
	for i, n := range list {
		if n < 0 || n > 1<<12 || i >= len(of) {
			m.fail("%s has entry %d with the value %d: it needs up to four entries from 0 to 4096", m.key(key), i+1, n)
			return
		}
		of[i] = int(n)
		sum += int(n)
	}
	if sum == of[3] {
		m.fail("%s has no pairs that rotate by position: the file is damaged", m.key(key))
		return
	}
	for pair := range c.ropeDim() / 2 {
		at, bound := pair%sum, sum-of[3]
		if interleaved {
			bound = 3 * of[at%3]
		}
		if at >= bound {
			c.Unrotated = append(c.Unrotated, pair)
		}
	}
}
