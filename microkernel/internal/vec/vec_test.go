package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	_ "sandwich/microkernel/internal/amd64"
	_ "sandwich/microkernel/internal/arm64"
	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/kerneltest"
)

// eachVec runs a test on the kernels of every instruction set of this host; under the race detector
// they are all plain Go.
func eachVec(t *testing.T, f func(t *testing.T, v *Vec, rng *rand.Rand)) {
	t.Helper()
	for _, isa := range kernel.Host().ISAs() {
		if jit.Race && isa != kernel.Go {
			continue
		}
		t.Run(isa.String(), func(t *testing.T) {
			v, err := New(isa)
			if err != nil {
				t.Fatal(err)
			}
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			f(t, v, rand.New(rand.NewPCG(seed, 1)))
		})
	}
}

// vecLengths are the sizes around every boundary of the loops, and some large ones.
var vecLengths = []int{1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 47, 48, 63, 64, 65, 100, 128, 160,
	255, 1000, 2049}

// drawing says what kind of values a test draws.
type drawing int

const (
	ordinary drawing = iota // normal numbers of moderate size
	wild                    // every magnitude, denormals, zeros of both signs
	specials                // infinities and NaN among them
)

func draw(rng *rand.Rand, x []float32, d drawing) {
	special := []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), negInf, float32(math.NaN()),
		math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, -0x1p-130, 88.8, -104.1, 1}
	for i := range x {
		x[i] = float32(rng.NormFloat64())
		switch {
		case d == wild && rng.IntN(2) == 0:
			x[i] = float32(math.Ldexp(rng.NormFloat64(), rng.IntN(240)-150))
		case d == wild && rng.IntN(8) == 0:
			x[i] = special[rng.IntN(2)]
		case d == specials && rng.IntN(6) == 0:
			x[i] = special[rng.IntN(len(special))]
		}
	}
}

// guarded returns n elements that end where an unreadable page begins.
func guarded[T any](t *testing.T, n int) []T {
	var e T
	b := kerneltest.Guarded(t, n*int(unsafe.Sizeof(e)))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n)
}

func guardedF32(t *testing.T, rng *rand.Rand, n int, d drawing) []float32 {
	x := guarded[float32](t, n)
	draw(rng, x, d)
	return x
}

// poison fills a result buffer with a NaN that no kernel makes.
func poison(x []float32) []float32 {
	for i := range x {
		x[i] = math.Float32frombits(0x7fdead00 + uint32(i)&0xff)
	}
	return x
}

// same compares bits; any NaN equals any other.
func same(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

func wantSame(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if !same(got[i], want[i]) {
			t.Fatalf("%s: element %d of %d is %x (%#08x), want %x (%#08x)", what, i, len(want),
				got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
		}
	}
}

func wantEqual[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s: element %d of %d is %v, want %v", what, i, len(want), got[i], want[i])
		}
	}
}

// p0 is the address of the first element; a slice may be empty.
func p0[T any](x []T) *T { return unsafe.SliceData(x) }

func TestRMSNorm(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		for _, n := range vecLengths {
			for d := ordinary; d <= specials; d++ {
				rows := 1 + rng.IntN(9) // in fours and one by one
				stride := n + rng.IntN(5)
				x := guardedF32(t, rng, (rows-1)*stride+n, d)
				w := guardedF32(t, rng, n, ordinary)
				got, want := poison(guarded[float32](t, len(x))), poison(make([]float32, len(x)))
				v.RMSNormRows(p0(got), stride, p0(x), stride, rows, p0(w), n, 1e-5)
				refRMSNormRows(p0(want), stride, p0(x), stride, rows, p0(w), n, 1e-5)
				wantSame(t, fmt.Sprintf("n=%d drawing %d", n, d), got, want)
			}
		}
		x := []float32{3, 4}
		v.RMSNorm(p0(x), p0(x), p0([]float32{1, 2}), 2, 0)
		if math.Abs(float64(x[0])-3/math.Sqrt(12.5)) > 1e-6 || math.Abs(float64(x[1])-8/math.Sqrt(12.5)) > 1e-6 {
			t.Errorf("in place: %v", x)
		}
	})
}

func TestLayerNorm(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		for _, n := range vecLengths {
			for d := ordinary; d <= specials; d++ {
				const rows = 3
				stride := n + rng.IntN(5)
				x := guardedF32(t, rng, (rows-1)*stride+n, d)
				w, b := guardedF32(t, rng, n, ordinary), guardedF32(t, rng, n, ordinary)
				got, want := poison(guarded[float32](t, len(x))), poison(make([]float32, len(x)))
				v.LayerNormRows(p0(got), stride, p0(x), stride, rows, p0(w), p0(b), n, 1e-5)
				for r := range rows {
					refLayerNorm(want[r*stride:][:n], x[r*stride:][:n], w, b, 1e-5)
				}
				wantSame(t, fmt.Sprintf("n=%d drawing %d", n, d), got, want)
				v.LayerNormRows(p0(x), stride, p0(x), stride, rows, p0(w), p0(b), n, 1e-5)
				for r := range rows {
					wantSame(t, fmt.Sprintf("n=%d drawing %d in place", n, d), x[r*stride:][:n], want[r*stride:][:n])
				}
			}
		}
		x := []float32{1, 3}
		v.LayerNormRows(p0(x), 2, p0(x), 2, 1, p0([]float32{1, 2}), p0([]float32{5, 7}), 2, 0)
		if x[0] != 4 || x[1] != 9 {
			t.Errorf("1 and 3 become %v, not 4 and 9", x)
		}
	})
}

func TestRoPE(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		for _, dim := range []int{2, 6, 16, 30, 32, 48, 64, 80, 96, 128, 130, 256} {
			for _, neox := range []bool{false, true} {
				for d := ordinary; d <= specials; d++ {
					heads, stride := 1+rng.IntN(4), dim+rng.IntN(9)
					got := guardedF32(t, rng, (heads-1)*stride+dim, d)
					cs := guardedF32(t, rng, dim, ordinary)
					want := append([]float32(nil), got...)
					v.RoPE(p0(got), dim, heads, stride, p0(cs), neox)
					refRoPE(p0(want), dim, heads, stride, p0(cs), neox)
					wantSame(t, fmt.Sprintf("dim=%d neox=%v", dim, neox), got, want)
				}
			}
		}
	})
}

// TestRoPERotates checks the meaning of the oracle: a rotation of each pair by its angle.
func TestRoPERotates(t *testing.T) {
	const dim = 8
	for _, neox := range []bool{false, true} {
		x, cs := make([]float32, dim), make([]float32, dim)
		draw(rand.New(rand.NewPCG(1, 1)), x, ordinary)
		in := append([]float32(nil), x...)
		for i := range dim / 2 {
			s, c := math.Sincos(float64(i + 1))
			cs[i], cs[dim/2+i] = float32(c), float32(s)
		}
		refRoPE(p0(x), dim, 1, dim, p0(cs), neox)
		for i := range dim / 2 {
			a, b := 2*i, 2*i+1
			if neox {
				a, b = i, i+dim/2
			}
			s, c := math.Sincos(float64(i + 1))
			wa, wb := float64(in[a])*c-float64(in[b])*s, float64(in[a])*s+float64(in[b])*c
			if math.Abs(float64(x[a])-wa) > 1e-6 || math.Abs(float64(x[b])-wb) > 1e-6 {
				t.Errorf("neox=%v pair %d: (%g, %g), want (%g, %g)", neox, i, x[a], x[b], wa, wb)
			}
		}
	}
}

func TestElementwise(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		for _, n := range vecLengths {
			for d := ordinary; d <= specials; d++ {
				a := guardedF32(t, rng, n, d)
				s := float32(rng.NormFloat64())
				run := func(name string, native, ref func(dst *float32)) {
					got := guarded[float32](t, n)
					draw(rng, got, d)
					want := append([]float32(nil), got...)
					native(p0(got))
					ref(p0(want))
					wantSame(t, fmt.Sprintf("%s n=%d drawing %d", name, n, d), got, want)
				}
				run("Add", func(p *float32) { v.Add(p, p0(a), n) }, func(p *float32) { refAdd(p, p0(a), n) })
				run("AddScaled", func(p *float32) { v.AddScaled(p, p0(a), s, n) }, func(p *float32) {
					refAddScaled(p,
						p0(a), s, n)
				})
				run("Scale", func(p *float32) { v.Scale(p, s, n) }, func(p *float32) { refScale(p, s, n) })
				half := n / 2
				run("AddRows", func(p *float32) { v.AddRows(p, n-half, p0(a), n-half, 2, half) }, func(p *float32) {
					refAdd(p, p0(a), half)
					refAdd(at(p, n-half), at(p0(a), n-half), half)
				})
				run("AddBias", func(p *float32) { v.AddBias(p, n-half, 2, p0(a), half) },
					func(p *float32) { refAddBias(p, n-half, 2, p0(a), half) })
			}
		}
	})
}

func TestSum(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		for _, n := range vecLengths {
			for _, count := range []int{1, 2, 3, 8} {
				for d := ordinary; d <= specials; d++ {
					parts := make([]*float32, count)
					for i := range parts {
						parts[i] = p0(guardedF32(t, rng, n, d))
					}
					got, want := poison(guarded[float32](t, n)), poison(make([]float32, n))
					v.Sum(p0(got), parts, n)
					refSum(p0(want), parts, n)
					wantSame(t, fmt.Sprintf("%d parts of %d drawing %d", count, n, d), got, want)
					v.Sum(parts[0], parts, n)
					wantSame(t, fmt.Sprintf("%d parts of %d drawing %d, in place", count, n, d),
						vecOf(parts[0], n), want)
				}
			}
		}
	})
}

func TestHalfRows(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		for _, n := range append(vecLengths, 70000) {
			x := guardedF32(t, rng, n, specials)
			for i := range x {
				if rng.IntN(2) == 0 { // magnitudes around the range of a half
					x[i] = float32(math.Ldexp(rng.NormFloat64(), rng.IntN(46)-28))
				}
			}
			got, want := guarded[uint16](t, n), make([]uint16, n)
			v.f32ToF16(p0(got), p0(x), n)
			refF32ToF16(p0(want), p0(x), n)
			wantEqual(t, fmt.Sprintf("to f16, n=%d", n), got, want)
			h := guarded[uint16](t, n)
			for i := range h {
				h[i] = uint16(rng.Uint32())
			}
			back, wantBack := poison(guarded[float32](t, n)), make([]float32, n)
			v.f16ToF32(p0(back), p0(h), n)
			refF16ToF32(p0(wantBack), p0(h), n)
			wantSame(t, fmt.Sprintf("to f32, n=%d", n), back, wantBack)
		}
	})
}

func TestQuantizeRowQ8(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		for _, k := range []int{32, 64, 96, 256, 768, 4096} {
			for d := ordinary; d <= specials; d++ {
				x := guardedF32(t, rng, k, d)
				switch rng.IntN(4) {
				case 0:
					clear(x[:32])
				case 1:
					for i := range 32 {
						x[i] *= 0x1p-124
					}
				}
				got, want := kerneltest.Guarded(t, k/32*kernel.ActQ8Bytes), make([]byte, k/32*kernel.ActQ8Bytes)
				for i := range got {
					got[i] = 0xA5
				}
				if k%kernel.ActQ8Group == 0 {
					v.quantizeRowQ8Superblock(p0(x), k, unsafe.Pointer(&got[0]))
					refQuantizeRowQ8Superblock(p0(x), k, unsafe.Pointer(&want[0]))
					wantEqual(t, "ActQ8 row of groups", got, want)
					bytes := kernel.ActQ8KRowBytes(k)
					v.quantizeRowQ8K(p0(x), k, unsafe.Pointer(&got[0]))
					refQuantizeRowQ8K(p0(x), k, unsafe.Pointer(&want[0]))
					wantEqual(t, "ActQ8K row", got[:bytes], want[:bytes])
				}
				v.quantizeRowQ8(p0(x), k, unsafe.Pointer(&got[0]))
				refQuantizeRowQ8(p0(x), k, unsafe.Pointer(&want[0]))
				wantEqual(t, "ActQ8 row", got, want)
				for i := range x {
					block := got[i/32*kernel.ActQ8Bytes:]
					scale := *(*float32)(unsafe.Pointer(&block[0]))
					if d != ordinary || scale == 0 { // zero: a block below the smallest scale
						continue
					}
					q := int8(block[8+i%32])
					if e := math.Abs(float64(x[i] - float32(q)*scale)); e > 0.5001*float64(scale) {
						t.Fatalf("%g is stored as %d of %g", x[i], q, scale)
					}
				}
			}
		}
	})
}
