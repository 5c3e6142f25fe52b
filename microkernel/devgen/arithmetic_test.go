package devgen_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/devgen/interp"
	"sandwich/microkernel/internal/kerneltest"
	"sandwich/microkernel/internal/ref"
	"sandwich/microkernel/qtype"
)

// binaryOp builds an operation of two words.
type binaryOp = func(b *devgen.Builder, x, y devgen.Value) devgen.Value

// apply runs an operation on every pair of a list by the interpreter.
func apply(t *testing.T, soft devgen.Soft, pairs [][2]uint32, op binaryOp) []uint32 {
	t.Helper()
	b := devgen.NewBuilder("apply", 64)
	in, out := b.Binding("in", devgen.Read), b.Binding("out", devgen.Write)
	n := b.Push("n", devgen.U32)
	i := b.MulAdd(b.Builtin(devgen.GroupX), b.U(64), b.Builtin(devgen.LocalIndex))
	b.If(b.Less(i, n), func() {
		at := b.Shl(i, b.U(1))
		b.Store(out, i, op(b, b.Load(in, at), b.Load(in, b.Add(at, b.U(1)))))
	})
	k, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	memory, result := make([]byte, 8*len(pairs)), make([]byte, 4*len(pairs))
	for i, p := range pairs {
		binary.LittleEndian.PutUint32(memory[8*i:], p[0])
		binary.LittleEndian.PutUint32(memory[8*i+4:], p[1])
	}
	grid := [3]int{(len(pairs) + 63) / 64, 1, 1}
	k = devgen.Lower(k, soft)
	if err := k.Validate(); err != nil {
		t.Fatal(err)
	}
	if err := interp.Run(k, grid, [][]byte{memory, result}, []uint32{uint32(len(pairs))}); err != nil {
		t.Fatal(err)
	}
	list := make([]uint32, len(pairs))
	for i := range list {
		list[i] = binary.LittleEndian.Uint32(result[4*i:])
	}
	return list
}

// oddFloats returns pairs of random float32 of all classes.
func oddFloats(n int) [][2]uint32 {
	r := rand.New(rand.NewPCG(1, 1))
	pairs := make([][2]uint32, n)
	for i := range pairs {
		for j := range pairs[i] {
			switch r.IntN(4) {
			case 0:
				pairs[i][j] = math.Float32bits(kerneltest.Edge(r))
			case 1:
				pairs[i][j] = r.Uint32() // any exponent
			case 2:
				pairs[i][j] = r.Uint32() & 0x80ffffff // subnormal or nearly
			default:
				pairs[i][j] = math.Float32bits(float32(1+r.IntN(1<<12)) / float32(1+r.IntN(1<<12)))
			}
		}
	}
	return pairs
}

func same(x, y uint32) bool {
	isNaN := func(bits uint32) bool { return bits&^(1<<31) > 0x7f800000 }
	return x == y || isNaN(x) && isNaN(y)
}

// TestLowerIsExact compares the integer sequences of division and square root with Go.
func TestLowerIsExact(t *testing.T) {
	pairs := oddFloats(60000)
	f := math.Float32frombits
	div := func(b *devgen.Builder, x, y devgen.Value) devgen.Value { return b.Bits(b.FDiv(b.Float(x), b.Float(y))) }
	for i, got := range apply(t, devgen.Soft{Div: true}, pairs, div) {
		x, y := f(pairs[i][0]), f(pairs[i][1])
		if want := math.Float32bits(x / y); !same(got, want) {
			t.Fatalf("%g / %g (%#x / %#x) = %#x, want %#x", x, y, pairs[i][0], pairs[i][1], got, want)
		}
	}
	sqrt := func(b *devgen.Builder, x, _ devgen.Value) devgen.Value { return b.Bits(b.FSqrt(b.Float(x))) }
	for i, got := range apply(t, devgen.Soft{Sqrt: true}, pairs, sqrt) {
		x := f(pairs[i][0])
		if want := math.Float32bits(float32(math.Sqrt(float64(x)))); !same(got, want) {
			t.Fatalf("sqrt %g (%#x) = %#x, want %#x", x, pairs[i][0], got, want)
		}
	}
}

// TestHalves compares the conversion of every float16 and of random float32 with the CPU's.
func TestHalves(t *testing.T) {
	var all [][2]uint32
	for h := range 1 << 16 {
		all = append(all, [2]uint32{uint32(h)})
	}
	for h, got := range apply(t, devgen.Soft{Half: true}, all, func(b *devgen.Builder, x, _ devgen.Value) devgen.Value {
		return b.Bits(b.FloatFromHalf(x))
	}) {
		if want := math.Float32bits(qtype.FloatFromHalf(uint16(h))); got != want {
			t.Fatalf("half %#x is %#x, want %#x", h, got, want)
		}
	}
	pairs := oddFloats(60000)
	for i := range pairs[:40000] { // near halves
		pairs[i][0] = math.Float32bits(qtype.FloatFromHalf(uint16(pairs[i][1]))) + pairs[i][0]%3<<12 - pairs[i][0]%5
	}
	for i, got := range apply(t, devgen.Soft{}, pairs, func(b *devgen.Builder, x, _ devgen.Value) devgen.Value {
		return b.HalfFromFloat(b.Float(x))
	}) {
		if want := ref.HalfFromFloat(math.Float32frombits(pairs[i][0])); got != uint32(want) {
			t.Fatalf("%#x rounds to %#x, want %#x", pairs[i][0], got, want)
		}
	}
}

// TestIntegers compares operations on variables and on constants with each other and with Go.
func TestIntegers(t *testing.T) {
	list := map[string]struct {
		op   binaryOp
		want func(x, y uint32) uint32
	}{
		"add": {func(b *devgen.Builder, x, y devgen.Value) devgen.Value { return b.Add(x, y) },
			func(x, y uint32) uint32 { return x + y }},
		"sub": {(*devgen.Builder).Sub, func(x, y uint32) uint32 { return x - y }},
		"mul": {(*devgen.Builder).Mul, func(x, y uint32) uint32 { return x * y }},
		"div": {(*devgen.Builder).Div, func(x, y uint32) uint32 { return x / y }},
		"rem": {(*devgen.Builder).Rem, func(x, y uint32) uint32 { return x % y }},
		"and": {(*devgen.Builder).And, func(x, y uint32) uint32 { return x & y }},
		"or":  {(*devgen.Builder).Or, func(x, y uint32) uint32 { return x | y }},
		"xor": {(*devgen.Builder).Xor, func(x, y uint32) uint32 { return x ^ y }},
		"shl": {(*devgen.Builder).Shl, func(x, y uint32) uint32 { return x << (y & 31) }},
		"shr": {(*devgen.Builder).Shr, func(x, y uint32) uint32 { return x >> (y & 31) }},
		"sar": {(*devgen.Builder).Sar, func(x, y uint32) uint32 { return uint32(int32(x) >> (y & 31)) }},
		"min": {(*devgen.Builder).Min, func(x, y uint32) uint32 { return min(x, y) }},
		"max": {(*devgen.Builder).Max, func(x, y uint32) uint32 { return max(x, y) }},
	}
	constants := []uint32{1, 2, 3, 8, 31, 1 << 31, 0xffffffff, 0}
	r := rand.New(rand.NewPCG(7, 7))
	for name, o := range list {
		for _, c := range constants {
			if c == 0 && (name == "div" || name == "rem") {
				continue
			}
			pairs := make([][2]uint32, 70)
			for i := range pairs {
				pairs[i] = [2]uint32{r.Uint32() >> r.IntN(32), c}
			}
			variable := apply(t, devgen.Soft{}, pairs, o.op)
			constant := apply(t, devgen.Soft{}, pairs, func(b *devgen.Builder, x, _ devgen.Value) devgen.Value {
				return o.op(b, x, b.U(int(c)))
			})
			for i, p := range pairs {
				if want := o.want(p[0], c); variable[i] != want || constant[i] != want {
					t.Fatalf("%s(%d, %d) = %d, with a constant %d, want %d", name, p[0], c, variable[i], constant[i],
						want)
				}
			}
		}
	}
}
