package model

import (
	"fmt"
	"math"

	"sandwich/internal/portable"
)

// Llama3Rope is the rule by which Llama 3.1 extends its context: frequencies of waves longer than
// Original/Low are divided by Factor, those of waves shorter than Original/High are kept, and the
// ones in between are interpolated.
type Llama3Rope struct {
	Factor, Low, High float64
	Original          int // context before the extension, in tokens
}

// factors returns the divisors of the angles of a head's dim/2 pairs, for rotation base base.
func (r Llama3Rope) factors(base float64, dim int) []float32 {
	out := make([]float32, dim/2)
	for i := range out {
		wave := 2 * math.Pi * portable.Pow(base, float64(2*i)/float64(dim))
		switch {
		case wave < float64(r.Original)/r.High:
			out[i] = 1
		case wave >= float64(r.Original)/r.Low:
			out[i] = float32(r.Factor)
		default:
			smooth := (float64(r.Original)/wave - r.Low) / (r.High - r.Low)
			out[i] = float32(1 / ((1-smooth)/r.Factor + smooth))
		}
	}
	return out
}

// check returns an error for values outside the rule.
func (r *Llama3Rope) check() error {
	if !(r.Factor > 0) || !(r.Low > 0) || !(r.High >= r.Low) || r.Original < 1 {
		return fmt.Errorf("invalid Llama 3 RoPE scaling %+v: "+
			"it needs factor > 0, 0 < low <= high and an original context", *r)
	}
	return nil
}

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
func (y *Yarn) Gain() float64 { return y.Magnitude(1) / y.Magnitude(y.Log) }

// Magnitude returns 1 + 0.1*by*ln(Factor).
func (y *Yarn) Magnitude(by float64) float64 { return 1 + float64(0.1*by*portable.Log(y.Factor)) }

// ramp returns the weight of the original frequency of a pair, from 0 to 1; the rest is the divided
// frequency.
func (y *Yarn) ramp(pair, dim int, base float64) float64 {
	turnsAt := func(turns float64) float64 { // index of the pair that rotates so often within the original context
		return float64(dim) * portable.Log(float64(y.Original)/(turns*2*math.Pi)) / (2 * portable.Log(base))
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
		f := portable.Pow(r.Base, -float64(2*i)/float64(r.Dim))
		if factors != nil {
			f /= float64(factors.Data[i])
		}
		if r.Yarn != nil {
			keep := r.Yarn.ramp(i, r.Dim, r.Base)
			out[i] = float64(f*keep) + float64(f/r.Yarn.Factor*(1-keep))
		} else {
			out[i] = f * r.Scale
		}
	}
	for _, pair := range r.Unrotated {
		out[pair] = 0
	}
	return out
}

// Vectors returns pointers to the vectors of divisors of the angles.
func (r *Rope) Vectors() []**Vector {
	out := []**Vector{&r.Factors}
	if r.Long != nil {
		out = append(out, &r.Long.Short, &r.Long.Long)
	}
	return out
}

// CheckFactors removes factors that the file does not have, and returns an error for factors that
// are not positive.
func (r *Rope) CheckFactors() error {
	if l := r.Long; l != nil && (l.Short == nil || l.Long == nil) {
		if l.Short != l.Long {
			return fmt.Errorf("the file has only one of the tensors rope_factors_short and rope_factors_long: " +
				"it is damaged, convert or download it again")
		}
		r.Long = nil
	}
	for _, v := range r.Vectors() {
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

// Rope describes how positions rotate queries and keys.
type Rope struct {
	Base      float64
	Neox      bool    // pairs (i, i+d/2) instead of (2i, 2i+1)
	Dim       int     // leading dimensions of a head that rotate; pairs = Dim/2
	Factors   *Vector // [Dim/2] divisors of the angles (Llama 3 frequency scaling), or nil
	Long      *Long   // other divisors, by the length of the context; or nil
	Scale     float64 // factor of positions (linear scaling), 1 for none
	Yarn      *Yarn   // interpolation by wavelength, instead of Scale; or nil
	Gain      float64 // factor of cosines and sines, 1 for none
	Unrotated []int   // pairs that do not rotate
	Rule      string  // name of an unsupported scaling rule; "" for none
}

// Long holds the divisors of LongRoPE (Ding et al., 2024): Short applies if sequences have at most
// Original positions, Long if they may have more.
type Long struct {
	Original    int
	Short, Long *Vector // [Dim/2]
}
