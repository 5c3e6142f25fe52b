package vec

import (
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/ref"
)

// GLU is a gated linear unit: it combines the outputs of a gate and an up projection. Shazeer: GLU
// Variants Improve Transformer, 2020.
type GLU uint8

// The gated units; x is the output of the gate and y that of the up projection.
const (
	SwiGLU        GLU = iota // x*sigmoid(x) * y
	GeGLU                    // x*Phi(x) * y, with tanh in the place of the error function
	ClampedSwiGLU            // x*sigmoid(1.702x) * (y+1), of x at most 7 and y from -7 to 7 (gpt-oss)
	SigmoidGLU               // sigmoid(x) * y
)

var gluOps = [...]kernel.VectorOp{
	SwiGLU: kernel.OpSwiGLU, GeGLU: kernel.OpGeGLU, ClampedSwiGLU: kernel.OpClampedGLU, SigmoidGLU: kernel.OpSigmoidGLU,
}

// GLU writes dst[i] = unit(gate[i], up[i]).
func (v *Vec) GLU(unit GLU, dst, gate, up *float32, n int) {
	v.GLURows(unit, dst, n, gate, n, up, n, 1, n)
}

// GLURows is GLU for n columns of `rows` rows: the epilogue of a slice of the gate and up
// projections.
func (v *Vec) GLURows(unit GLU, dst *float32, dstStride int, gate *float32, gateStride int, up *float32, upStride,
	rows, n int) {
	if !v.native {
		for r := range rows {
			refGLU(unit, at(dst, r*dstStride), at(gate, r*gateStride), at(up, r*upStride), n)
		}
		return
	}
	args := kernel.VectorArgs{P: pointers{ptr(dst), ptr(gate), ptr(up)}, N: lengths{dstStride, gateStride,
		upStride, rows, n}}
	v.call(gluOps[unit], &args)
}

// ones replaces the output of the up projection in models without one.
var ones = func() (o [1024]float32) {
	for i := range o {
		o[i] = 1
	}
	return o
}()

// GELURows writes dst = x*Phi(x) for n columns of `rows` rows, with the tanh approximation: the
// activation of a product without a gate (Hendrycks, Gimpel: Gaussian Error Linear Units, 2016).
// It is GeGLU with an up projection of ones.
func (v *Vec) GELURows(dst *float32, dstStride int, x *float32, xStride, rows, n int) {
	for done := 0; done < n; done += len(ones) {
		v.GLURows(GeGLU, at(dst, done), dstStride, at(x, done), xStride, &ones[0], 0, rows, min(len(ones), n-done))
	}
}

func refGLU(unit GLU, dst, gate, up *float32, n int) {
	d, g, u := vecOf(dst, n), vecOf(gate, n), vecOf(up, n)
	for i := range d {
		a, b := g[i], u[i]
		var x float32
		switch unit {
		case GeGLU:
			x = float32(ref.FMA32(float32(a*a), arith.GELUC3, arith.GELUC1) * a)
		case ClampedSwiGLU:
			a = lower(a, arith.GLULimit)
			b = -lower(-lower(b, arith.GLULimit), arith.GLULimit) + arith.GLULinear
			x = float32(a * arith.GLUSlope)
		case SigmoidGLU:
			x, a = -a, 1
		default:
			x = -a
		}
		d[i] = float32(a/(1+exp32(x))) * b
	}
}

// lower returns min(x, limit), and NaN for a NaN x.
func lower(x, limit float32) float32 {
	if limit < x {
		return limit
	}
	return x
}

// SoftCap sets x[i] = limit * tanh(x[i] * scale / limit). Bello et al.: Neural Combinatorial
// Optimization with Reinforcement Learning, 2016, appendix A.1.
func (v *Vec) SoftCap(x *float32, n int, scale, limit float32) {
	factor := capFactor(scale, limit)
	if !v.native {
		refSoftCap(vecOf(x, n), factor, limit)
		return
	}
	args := kernel.VectorArgs{P: pointers{ptr(x)}, N: lengths{n}, F: floats{factor, limit}}
	v.call(kernel.OpSoftCap, &args)
}

// capFactor returns the factor of a value in the argument of the exponential of a soft cap.
func capFactor(scale, limit float32) float32 { return float32(2 * float64(scale) / float64(limit)) }

// refSoftCap computes tanh(z/2) as 1 - 2/(exp(z)+1).
func refSoftCap(x []float32, factor, limit float32) {
	for i, e := range x {
		x[i] = limit - (limit+limit)/(exp32(float32(e*factor))+1)
	}
}
