package vec

import (
	"math"

	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/ref"
)

// Operations of recurrent layers: causal convolutions and the delta rule.

// ConvAct is the activation of a convolution.
type ConvAct uint8

// The activations of a convolution.
const (
	ConvSiLU ConvAct = iota // s*sigmoid(s)
	ConvGate                // s*gate, of another row of the same length
)

// Conv is a causal convolution of `rows` rows of n channels, each channel with taps of its own:
//
//	dst[r] = act(w[0]*x[r][0] + w[1]*x[r][1] + ... + w[taps-1]*x[r][taps-1])
//
// where x[r][t] is at r row strides plus t times TapStride from x. With negative strides, rows may
// be computed from the last to the first, and each result may replace the newest input row of its
// sum, which no later result reads. The sum is one product and one fused multiply-add per further
// tap, the oldest first.
type Conv struct {
	Act        ConvAct
	Taps       int
	TapStride  int      // positive
	W          *float32 // [taps][WStride]
	WStride    int
	Gate       *float32 // [rows][GateStride], of ConvGate
	GateStride int
}

// ConvRows computes a convolution.
func (v *Vec) ConvRows(c *Conv, dst *float32, dstStride int, x *float32, xStride, rows, n int) {
	if !v.native {
		refConvRows(c, dst, dstStride, x, xStride, rows, n)
		return
	}
	args := kernel.VectorArgs{P: pointers{ptr(dst), ptr(x), ptr(c.W), ptr(c.Gate)},
		N: lengths{4 * dstStride, 4 * xStride, 4 * c.WStride, rows, n, 4 * c.GateStride},
		R: [2]int32{int32(c.Taps), int32(4 * c.TapStride)}}
	v.call(convKernels[c.Act], &args)
}

var convKernels = [...]kernel.VectorOp{ConvSiLU: kernel.OpConvSiLU, ConvGate: kernel.OpConvGate}

func refConvRows(c *Conv, dst *float32, dstStride int, x *float32, xStride, rows, n int) {
	for r := range rows {
		for i := range n {
			s := float32(*at(c.W, i) * *at(x, r*xStride+i))
			for t := 1; t < c.Taps; t++ {
				s = ref.FMA32(*at(c.W, t*c.WStride+i), *at(x, r*xStride+t*c.TapStride+i), s)
			}
			d := at(dst, r*dstStride+i)
			if c.Act == ConvGate {
				*d = s * *at(c.Gate, r*c.GateStride+i)
			} else {
				*d = s / (1 + exp32(-s))
			}
		}
	}
}

// MulRows multiplies n columns of `rows` rows of dst by those of a.
func (v *Vec) MulRows(dst *float32, stride int, a *float32, aStride, rows, n int) {
	if v.native {
		args := kernel.VectorArgs{P: pointers{ptr(dst), ptr(a)}, N: lengths{stride, aStride, rows, n}}
		v.call(kernel.OpMul, &args)
		return
	}
	for r := range rows {
		d, x := vecOf(at(dst, r*stride), n), vecOf(at(a, r*aStride), n)
		for i := range d {
			d[i] *= x[i]
		}
	}
}

// L2NormRows multiplies each of `rows` rows x of n elements by scale / max(|x|, eps).
func (v *Vec) L2NormRows(x *float32, stride, rows, n int, scale, eps float32) {
	if v.native {
		args := kernel.VectorArgs{P: pointers{ptr(x)}, N: lengths{stride, rows, n}, F: floats{scale, eps}}
		v.call(kernel.OpL2Norm, &args)
		return
	}
	for r := range rows {
		row := vecOf(at(x, r*stride), n)
		var l [lanes]float32
		for i, e := range row {
			l[i%lanes] = ref.FMA32(e, e, l[i%lanes])
		}
		by := scale / maxLane(eps, sqrt32(treeSum(&l)))
		for i := range row {
			row[i] *= by
		}
	}
}

// DeltaGates computes in place, for n values each, from alpha the decay exp(a*softplus(alpha+dt))
// and from beta the rate sigmoid(beta) of the delta rule (Yang et al.: Gated Delta Networks, 2024,
// section 3; the decay is that of Gu, Dao: Mamba, 2023). It is plain Go: two numbers for each head
// and row.
func DeltaGates(alpha, beta, a, dt []float32) {
	for i, x := range alpha {
		alpha[i] = exp32(float32(float64(a[i]) * softplus(x+dt[i])))
		beta[i] = 1 / (1 + exp32(-beta[i]))
	}
}

// softplus returns ln(1+exp(x)) as max(x, 0) + ln(1+y) with y = exp(-|x|). The logarithm is 2
// artanh(y/(2+y)), a series in at most 1/9. Every step is rounded alike on all machines.
func softplus(x float32) float64 {
	y := float64(exp32(-float32(math.Abs(float64(x)))))
	t := y / (2 + y)
	t2, sum := t*t, 0.0
	for k := 19; k >= 1; k -= 2 {
		sum = math.FMA(sum, t2, 1/float64(k))
	}
	sum *= 2 * t
	if x > 0 {
		sum += float64(x)
	}
	if x != x {
		return float64(x)
	}
	return sum
}

// Delta is the gated delta rule over consecutive rows of one head, for some columns of its values:
//
//	S = decay*S;  S += k (beta * (v - S'k));  out = S'q
//
// with S [dim][columns] in consecutive panels of sixteen columns, [dim][16] each. Columns are
// independent: any cut of columns and of rows computes the same bits (DESIGN.md, rule 6). S'k is
// two chains of fused multiply-adds over the even and the odd rows of the old S, added, and one
// FMA by the decay; S'q is the same over the new S.
type Delta struct {
	Dim, Columns int      // columns up to 32
	Rows         int      // some 256 at most: a call lasts dim*columns*rows/16 cycles
	Q, K, V      *float32 // of the first row
	Stride       int      // of the rows of q, k and v
	Out          *float32 // [rows][OutStride]
	OutStride    int
	Decay, Beta  *float32 // one a row
	GateStride   int
}

// StatePanel is the number of columns in a panel of a state.
const StatePanel = lanes

// DeltaRule applies the rule to a state.
func (v *Vec) DeltaRule(d *Delta, state *float32) {
	if v.native {
		args := kernel.VectorArgs{P: pointers{ptr(state), ptr(d.Q), ptr(d.K), ptr(d.V), ptr(d.Out), ptr(d.Decay),
			ptr(d.Beta)}, N: lengths{d.Dim, d.Rows, d.Stride, d.OutStride, d.GateStride, d.Columns}}
		v.call(kernel.OpDelta, &args)
		return
	}
	for p := 0; p < d.Columns; p += lanes {
		refDelta(d, at(state, p*d.Dim), p, min(lanes, d.Columns-p))
	}
}

// refDelta computes the columns [first, first+n) of a panel.
func refDelta(d *Delta, state *float32, first, n int) {
	s := vecOf(state, d.Dim*lanes)
	for r := range d.Rows {
		q, k := vecOf(at(d.Q, r*d.Stride), d.Dim), vecOf(at(d.K, r*d.Stride), d.Dim)
		value, out := vecOf(at(d.V, r*d.Stride+first), n), vecOf(at(d.Out, r*d.OutStride+first), n)
		decay, beta := *at(d.Decay, r*d.GateStride), *at(d.Beta, r*d.GateStride)
		for c := range lanes {
			var held, o [2]float32 // of the even and of the odd rows of the state
			for i := range d.Dim {
				held[i%2] = ref.FMA32(k[i], s[i*lanes+c], held[i%2])
			}
			var x float32 // columns beyond the values are zero and stay so
			if c < n {
				x = value[c]
			}
			x = float32(ref.FMA32(-decay, held[0]+held[1], x) * beta)
			for i := range d.Dim {
				e := &s[i*lanes+c]
				*e = ref.FMA32(k[i], x, float32(decay**e))
				o[i%2] = ref.FMA32(q[i], *e, o[i%2])
			}
			if c < n {
				out[c] = o[0] + o[1]
			}
		}
	}
}
