// Package portable has functions of package math with the same bits on every architecture: those
// that math gives on amd64 with fused multiply-add. The math package has assembly of its own per
// architecture, and compilers for some architectures fuse a multiplication and an addition; an
// explicit conversion prevents that (Go specification, "Floating-point operators").
package portable

import "math"

// Exp returns e**x. The method is that of math/exp_amd64.s (N. Shibata, "Efficient evaluation
// methods of elementary functions suitable for SIMD computation", 2010).
func Exp(x float64) float64 {
	const (
		overflow = 7.09782712893384e+02
		log2E    = 1.4426950408889634073599246810018920
		ln2U     = 0.69314718055966295651160180568695068359375
		ln2L     = 0.28235290563031577122588448175013436025525412068e-12
	)
	if math.IsNaN(x) || math.IsInf(x, 0) || x > overflow || x < -700 {
		return math.Exp(x) // exact, or so close to 0 that the last bits do not matter
	}
	e := math.RoundToEven(float64(log2E * x))
	x = math.FMA(-ln2U, e, x)
	x = math.FMA(-ln2L, e, x)
	x = float64(x * 0.0625)
	s := 2.4801587301587301587e-5
	for _, c := range [...]float64{1.9841269841269841270e-4, 1.3888888888888888889e-3, 8.3333333333333333333e-3,
		4.1666666666666666667e-2, 1.6666666666666666667e-1, 0.5, 1} {
		s = math.FMA(s, x, c)
	}
	x = float64(x * s)
	for range 3 {
		x = float64(x * (x + 2))
	}
	x = math.FMA(x, x+2, 1)
	return float64(x * math.Ldexp(1, int(e)))
}

// Log returns the natural logarithm of x. The method is that of FreeBSD's e_log.c.
func Log(x float64) float64 {
	const (
		ln2Hi = 6.93147180369123816490e-01
		ln2Lo = 1.90821492927058770002e-10
		l1    = 6.666666666666735130e-01
		l2    = 3.999999999940941908e-01
		l3    = 2.857142874366239149e-01
		l4    = 2.222219843214978396e-01
		l5    = 1.818357216161805012e-01
		l6    = 1.531383769920937332e-01
		l7    = 1.479819860511658591e-01
	)
	if !(x > 0) || math.IsInf(x, 1) {
		return math.Log(x)
	}
	f1, ki := math.Frexp(x)
	if f1 < math.Sqrt2/2 {
		f1 *= 2
		ki--
	}
	f, k := f1-1, float64(ki)
	s := float64(f / (2 + f))
	s2 := float64(s * s)
	s4 := float64(s2 * s2)
	t1 := float64(s2 * (l1 + float64(s4*(l3+float64(s4*(l5+float64(s4*l7)))))))
	t2 := float64(s4 * (l2 + float64(s4*(l4+float64(s4*l6)))))
	r := t1 + t2
	hfsq := float64(float64(0.5*f) * f)
	return float64(k*ln2Hi) - ((hfsq - (float64(s*(hfsq+r)) + float64(k*ln2Lo))) - f)
}

// Pow returns x**y for a positive finite x and a finite y below 2**63.
func Pow(x, y float64) float64 {
	switch {
	case !(x > 0) || math.IsInf(x, 0) || math.IsNaN(y) || math.Abs(y) >= 1<<63, y == 0, y == 1, y == 0.5, y == -0.5:
		return math.Pow(x, y) // special cases, which are exact
	}
	yi, yf := math.Modf(math.Abs(y))
	a, ae := 1.0, 0 // the result is a * 2**ae
	if yf != 0 {
		if yf > 0.5 {
			yf--
			yi++
		}
		a = Exp(float64(yf * Log(x)))
	}
	x1, xe := math.Frexp(x)
	for i := int64(yi); i != 0; i >>= 1 {
		if xe < -1<<12 || 1<<12 < xe {
			ae += xe // overflow or underflow
			break
		}
		if i&1 == 1 {
			a = float64(a * x1)
			ae += xe
		}
		x1 = float64(x1 * x1)
		xe <<= 1
		if x1 < .5 {
			x1 += x1
			xe--
		}
	}
	if y < 0 {
		a, ae = 1/a, -ae
	}
	return math.Ldexp(a, ae)
}

// Coefficients of Sincos (Cephes, sin.c).
var (
	cosines = [...]float64{-1.13585365213876817300e-11, 2.08757008419747316778e-9, -2.75573141792967388112e-7,
		2.48015872888517045348e-5, -1.38888888888730564116e-3, 4.16666666666665929218e-2}
	sines = [...]float64{1.58962301576546568060e-10, -2.50507477628578072866e-8, 2.75573136213857245213e-6,
		-1.98412698295895385996e-4, 8.33333333332211858878e-3, -1.66666666666666307295e-1}
)

// Sincos returns the sine and cosine of x, which is below 2**29 in magnitude.
func Sincos(x float64) (sin, cos float64) {
	const (
		pi4A = 7.85398125648498535156e-1
		pi4B = 3.77489470793079817668e-8
		pi4C = 2.69515142907905952645e-15
	)
	if x == 0 || !(math.Abs(x) < 1<<29) {
		return math.Sincos(x)
	}
	sinSign, cosSign := x < 0, false
	x = math.Abs(x)
	j := uint64(float64(x * (4 / math.Pi)))
	y := float64(j)
	if j&1 == 1 {
		j++
		y++
	}
	j &= 7
	z := ((x - float64(y*pi4A)) - float64(y*pi4B)) - float64(y*pi4C)
	if j > 3 {
		j -= 4
		sinSign, cosSign = !sinSign, !cosSign
	}
	if j > 1 {
		cosSign = !cosSign
	}
	zz := float64(z * z)
	cos = 1 - float64(0.5*zz) + float64(float64(zz*zz)*polynomial(&cosines, zz))
	sin = z + float64(float64(z*zz)*polynomial(&sines, zz))
	if j == 1 || j == 2 {
		sin, cos = cos, sin
	}
	if cosSign {
		cos = -cos
	}
	if sinSign {
		sin = -sin
	}
	return sin, cos
}

// polynomial returns the value of a polynomial at x by Horner's rule.
func polynomial(coefficients *[6]float64, x float64) (sum float64) {
	for _, c := range coefficients {
		sum = float64(sum*x) + c
	}
	return sum
}
