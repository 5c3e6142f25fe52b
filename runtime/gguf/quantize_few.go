package gguf

import (
	"math"

	"sandwich/microkernel/qtype"
)

// fewValues quantizes the types whose numbers stand for a few values that no rule spaces evenly, or
// for one or two steps to either side.
type fewValues struct {
	d      *qtype.Desc
	u      []uint8 // numbers
	values []float32
	most   float32 // the largest magnitude of values
}

// hasFewValues says which types these are; codebooks without scales inside a block have a rule of
// their own, that of the reference quantizer.
func hasFewValues(d *qtype.Desc) bool {
	if d.Codebook != nil {
		return d.Subs != qtype.NoSubs || d.HalfRaw.Float == qtype.Brain
	}
	return d.ZeroPoint == 1
}

func newFewValues(d *qtype.Desc) fewValues {
	f := fewValues{d: d}
	for u := 0; u < 1<<d.Bits(); u += 1 << d.Shift {
		v := float32(d.Integer(uint8(u)))
		if d.Codebook == nil && v > 1 { // ternary types do not mean it, others do without
			continue
		}
		f.u, f.values = append(f.u, uint8(u)), append(f.values, v)
		f.most = max(f.most, float32(math.Abs(float64(v))))
	}
	return f
}

// write converts one block. Each span of elements that share a scale has its extreme value
// represented, the block its largest scale.
func (f fewValues) write(block []byte, src []float32) {
	span, d := f.d.Span(), f.d
	if d.Subs == qtype.NoSubs {
		span = len(src)
	}
	scale := make([]float32, len(src)/span)
	for g := range scale {
		scale[g] = extreme(src[g*span:][:span]) / f.most
		if !d.SubRaw.Negative {
			scale[g] = float32(math.Abs(float64(scale[g])))
		}
	}
	var t qtype.Turn
	one := f.head(&t, extreme(scale))
	for n := range d.Turns() {
		for k := 0; k < qtype.TurnK; k += d.Span() {
			s := scale[(n*qtype.TurnK+k)/span]
			t.Subs[k/d.Span()] = f.sub(s, one)
			exact, _ := d.Scales([2]float32{one}, t.Subs, k)
			f.numbers(t.U[k:][:d.Span()], src[n*qtype.TurnK+k:], inverse(exact))
		}
		d.Write(block, t, n)
	}
}

// head chooses the scale of the block, and returns it as readers see it.
func (f fewValues) head(t *qtype.Turn, largest float32) float32 {
	d := f.d
	x := float32(math.Abs(float64(largest))) / d.UnitScale() / float32(max(1, d.SubRaw.Most))
	switch {
	case d.Subs == qtype.FloatSubs:
		return 0
	case d.HalfRaw.Float == qtype.Brain: // a power of two that is not below
		t.Halves[0] = uint16((math.Float32bits(x) + 1<<23 - 1) >> 23 << 7)
	default:
		putHalf(&t.Halves[0], x)
	}
	return d.Half(t.Halves[0], 0)
}

// sub is the scale of a span, near to the wanted one, of those that the type has.
func (f fewValues) sub(want, one float32) uint8 {
	most := f.d.SubRaw.Most
	switch {
	case f.d.Subs == qtype.FloatSubs:
		const largest = 18<<3 | 6 // of nvfp4
		return uint8(min(largest, (math.Float32bits(want/f.d.Unit)+1<<(qtype.FloatSubShift-1))>>qtype.FloatSubShift))
	case f.d.SubRaw.Odd && want < 0:
		return -f.sub(-want, one)
	case f.d.SubRaw.Odd:
		return uint8(2*nearest((want*inverse(one)-1)/2, 0, most/2) + 1)
	}
	return uint8(int8(nearest(want*inverse(one), -most, most-1)))
}

// numbers gives every value the nearest number. Where eight numbers share their upper bit, the
// extreme of the eight decides it.
func (f fewValues) numbers(u []uint8, src []float32, inv float32) {
	from, to := 0, len(f.values)
	for k := range u {
		if k%8 == 0 && f.d.Made() && f.d.Subs != qtype.ParitySubs {
			if from, to = 0, len(f.values)/2; extreme(src[k:][:8])*inv < 0 {
				from, to = to, len(f.values)
			}
		}
		v, least := src[k]*inv, float32(math.Inf(1))
		for i := from; i < to; i++ {
			if far := float32(math.Abs(float64(f.values[i] - v))); far < least {
				u[k], least = f.u[i], far
			}
		}
	}
}
