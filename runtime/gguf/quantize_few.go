package gguf

import (
	"math"
	"sync"

	"sandwich/microkernel/qtype"
)

// fewValues quantizes types whose codes represent few values: those of a codebook, or ternary ones.
type fewValues struct {
	d   *qtype.Desc
	max float32 // largest magnitude of the values

	// near maps nearSteps equal intervals from -max to max to the code with the nearest value. If
	// groups of eight codes share their upper bit, near[0] has the codes without that bit and
	// near[1] those with it.
	near [2][nearSteps]uint8
}

// nearSteps is the number of intervals of fewValues.near.
const nearSteps = 1024

// hasFewValues reports whether fewValues quantizes the type. Codebook types without scales inside a
// block are not included: quantizeCodebook follows the reference quantizer.
func hasFewValues(d *qtype.Desc) bool {
	if d.Codebook != nil {
		return d.Subs != qtype.NoSubs || d.ScaleRaw.Float == qtype.Brain
	}
	return d.ZeroPoint == 1
}

// fewValuesByType has the *fewValues of each *qtype.Desc that was used.
var fewValuesByType sync.Map

// fewValuesOf returns the quantizer of a type, whose tables are computed once. It may be called
// concurrently.
func fewValuesOf(d *qtype.Desc) *fewValues {
	f, ok := fewValuesByType.Load(d)
	if !ok {
		f, _ = fewValuesByType.LoadOrStore(d, newFewValues(d))
	}
	return f.(*fewValues)
}

// newFewValues returns the quantizer of a type.
func newFewValues(d *qtype.Desc) *fewValues {
	f := &fewValues{d: d}
	var codes []uint8
	for u := 0; u < 1<<d.Bits(); u += 1 << d.Shift {
		v := d.Integer(uint8(u))
		if d.Codebook == nil && v > 1 { // not a value of ternary types
			continue
		}
		codes = append(codes, uint8(u))
		f.max = max(f.max, float32(v), float32(-v))
	}
	f.near[0] = f.nearest(codes)
	if f.shared() {
		half := len(codes) / 2
		f.near[0], f.near[1] = f.nearest(codes[:half]), f.nearest(codes[half:])
	}
	return f
}

// shared reports whether eight codes have a common upper bit.
func (f *fewValues) shared() bool { return f.d.Fields[len(f.d.Fields)-1].Share != 0 }

// nearest returns the code of codes with the nearest value for each interval.
func (f *fewValues) nearest(codes []uint8) (near [nearSteps]uint8) {
	for i := range near {
		v, smallest := f.max*(2*float32(i)+1-nearSteps)/nearSteps, float32(math.Inf(1))
		for _, u := range codes {
			if far := float32(math.Abs(float64(float32(f.d.Integer(u)) - v))); far < smallest {
				near[i], smallest = u, far
			}
		}
	}
	return near
}

// write quantizes one block. The scale of a span of elements is chosen so that its extreme value is
// represented exactly, and the scale of the block by the largest scale of a span.
func (f *fewValues) write(block []byte, src []float32) {
	span, d := f.d.Span(), f.d
	if d.Subs == qtype.NoSubs {
		span = len(src)
	}
	scale := make([]float32, len(src)/span)
	for g := range scale {
		scale[g] = extreme(src[g*span:][:span]) / f.max
		if !d.SubRaw.Negative {
			scale[g] = float32(math.Abs(float64(scale[g])))
		}
	}
	var t qtype.SubBlock
	one := f.head(&t, extreme(scale))
	for n := range d.SubBlocks() {
		for k := 0; k < qtype.SubBlockK; k += d.Span() {
			s := scale[(n*qtype.SubBlockK+k)/span]
			t.Subs[k/d.Span()] = f.sub(s, one)
			exact, _ := d.Scales([2]float32{one}, t.Subs, k)
			f.codes(t.U[k:][:d.Span()], src[n*qtype.SubBlockK+k:], inverse(exact))
		}
		d.Write(block, t, n)
	}
}

// head sets the scale of the block by the largest scale of a span and returns it as stored.
func (f *fewValues) head(t *qtype.SubBlock, largest float32) float32 {
	d := f.d
	x := float32(math.Abs(float64(largest))) / d.UnitScale() / float32(max(1, d.SubRaw.Most))
	switch {
	case d.Subs == qtype.FloatSubs:
		return 0
	case d.ScaleRaw.Float == qtype.Brain: // the next power of two
		t.BlockScales[0] = uint16((math.Float32bits(x) + 1<<23 - 1) >> 23 << 7)
	default:
		putHalf(&t.BlockScales[0], x)
	}
	return d.BlockScale(t.BlockScales[0], 0)
}

// sub returns the code of the span scale that is nearest to want. one is the scale of the block.
func (f *fewValues) sub(want, one float32) uint8 {
	limit := f.d.SubRaw.Most
	switch {
	case f.d.Subs == qtype.FloatSubs:
		const largest = 18<<3 | 6 // of nvfp4
		return uint8(min(largest, (math.Float32bits(want/f.d.Unit)+1<<(qtype.FloatSubShift-1))>>qtype.FloatSubShift))
	case f.d.SubRaw.Odd && want < 0:
		return -f.sub(-want, one)
	case f.d.SubRaw.Odd:
		return uint8(2*nearest((want*inverse(one)-1)/2, 0, limit/2) + 1)
	}
	return uint8(int8(nearest(want*inverse(one), -limit, limit-1)))
}

// codes writes the nearest code of each value to u; inv is the inverse of their scale. If eight
// codes share their upper bit, the extreme value of the eight decides it.
func (f *fewValues) codes(u []uint8, src []float32, inv float32) {
	near, inv := &f.near[0], inv*(nearSteps/2)/f.max
	for k := range u {
		if k%8 == 0 && f.shared() {
			if near = &f.near[0]; extreme(src[k:][:8])*inv < 0 {
				near = &f.near[1]
			}
		}
		v := float32(src[k]*inv) + nearSteps/2
		if src[k] == 0 { // inv is infinite for tiny scales
			v = nearSteps / 2
		}
		u[k] = near[int(max(0, min(v, nearSteps-1)))]
	}
}
