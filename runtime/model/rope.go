package model

import (
	"fmt"
	"math"
)

// Yarn is the rule of Peng et al.: YaRN: Efficient Context Window Extension of Large Language
// Models, 2023, section 3: waves that turn Fast times or more within the original context are
// kept, those that turn Slow times or less are stretched by Factor, the ones between
// interpolated.
type Yarn struct {
	Factor     float64
	Original   int // context of the first training, tokens
	Fast, Slow float64
	// Log is the multiplier by which the length of queries and keys, that the rule makes longer by
	// 1 + 0.1 ln(Factor), is divided again; 0: it is not.
	Log float64
}

func (y *Yarn) check() error {
	if !(y.Factor >= 1) || math.IsInf(y.Factor, 0) || y.Original < 1 || !(y.Fast > y.Slow) || !(y.Slow > 0) ||
		!(y.Log >= 0) || math.IsInf(y.Log, 0) {
		return fmt.Errorf("RoPE scaling %+v is no YaRN rule: it needs a factor of 1 or more, an original context "+
			"and beta_fast above beta_slow", *y)
	}
	return nil
}

// Gain is what the rule multiplies cosines and sines by (section 3.4).
func (y *Yarn) Gain() float64 { return y.mscale(1) / y.mscale(y.Log) }

func (y *Yarn) mscale(by float64) float64 { return 1 + 0.1*by*math.Log(y.Factor) }

// ramp is how much of a pair's angle is kept, 1 for all, and the rest of it stretched.
func (y *Yarn) ramp(pair, dim int, base float64) float64 {
	turnsAt := func(turns float64) float64 { // the pair that turns so often within the original context
		return float64(dim) * math.Log(float64(y.Original)/(turns*2*math.Pi)) / (2 * math.Log(base))
	}
	low, high := max(0, math.Floor(turnsAt(y.Fast))), min(float64(dim-1), math.Ceil(turnsAt(y.Slow)))
	return 1 - min(1, max(0, (float64(pair)-low)/max(0.001, high-low)))
}

// Frequencies are the angles by which each pair turns from one position to the next, where a
// sequence may have so many positions.
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
	for _, pair := range r.Still {
		out[pair] = 0
	}
	return out
}

// vectors are where the divisors of the angles are kept.
func (r *Rope) vectors() []**Vector {
	out := []**Vector{&r.Factors}
	if r.Long != nil {
		out = append(out, &r.Long.Short, &r.Long.Long)
	}
	return out
}

// checkFactors drops factors that the file lacks, and refuses those that no angle can be divided
// by.
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

// sections reads how a rotation's pairs are divided between time, height, width and one more axis.
// In a text the first three are the position and the fourth is 0, so that its pairs stand still:
// which these are is ggml's rule (rope, in both its orders), also where more or fewer pairs rotate
// than the file divides.
func (m *Metadata) sections(c *Config, interleaved bool) {
	const key = "rope.dimension_sections"
	list, ok := m.source.Ints(m.key(key))
	if !ok || m.from != fromFile {
		return
	}
	var of [4]int
	sum := 0
	for i, n := range list {
		if n < 0 || n > 1<<12 || i >= len(of) {
			m.fail("%s holds %d as number %d, which divides no rotation into four axes", m.key(key), n, i+1)
			return
		}
		of[i] = int(n)
		sum += int(n)
	}
	if sum == of[3] {
		m.fail("%s leaves nothing of the rotation to positions: the file is damaged", m.key(key))
		return
	}
	for pair := range c.ropeDim() / 2 {
		at, bound := pair%sum, sum-of[3]
		if interleaved {
			bound = 3 * of[at%3]
		}
		if at >= bound {
			c.Still = append(c.Still, pair)
		}
	}
}
