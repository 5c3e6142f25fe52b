package device

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"sandwich/microkernel/devgen"
)

const (
	probeSize  = 64   // invocations of a workgroup
	probeCases = 4096 // per class, a multiple of probeSize
)

// probe tests one class of arithmetic: an operation on three words.
type probe struct {
	class Class
	build func(b *devgen.Builder, x, y, z devgen.Value) devgen.Value
	cases func(r *rand.Rand, i int) [3]uint32
}

// probes lists the tests. A class may have several.
func probes() []probe {
	fma := func(b *devgen.Builder, x, y, z devgen.Value) devgen.Value { return b.FMA(x, y, z) }
	mulAdd := func(b *devgen.Builder, x, y, z devgen.Value) devgen.Value { return b.FAdd(b.FMul(x, y), z) }
	div := func(b *devgen.Builder, x, y, _ devgen.Value) devgen.Value { return b.FDiv(x, y) }
	sqrt := func(b *devgen.Builder, x, _, _ devgen.Value) devgen.Value { return b.FSqrt(x) }
	dot := func(b *devgen.Builder, x, y, z devgen.Value) devgen.Value {
		return b.Float(b.Dot4(b.Bits(x), b.Bits(y), b.Bits(z)))
	}
	return []probe{
		{FMA, fma, normalCase},
		{FMA, fma, cancellingCase},
		{Product, mulAdd, normalCase},
		{Product, mulAdd, cancellingCase},
		{Division, div, normalCase},
		{Division, div, subnormalQuotient},
		{SquareRoot, sqrt, positiveCase},
		{Subnormal, mulAdd, subnormalCase},
		{SubnormalFMA, fma, subnormalCase},
		{IntegerDot, dot, func(r *rand.Rand, _ int) [3]uint32 { return [3]uint32{r.Uint32(), r.Uint32(), r.Uint32()} }},
	}
}

// SelfTest compares the device's arithmetic with Go's, bit for bit, on cases drawn from a fixed
// seed, and returns the exact classes. A class is also inexact if the device cannot compile or run
// its kernel. The error is that of the device if it is lost, or the context's.
func SelfTest(ctx context.Context, d Device) (Exactness, error) {
	exact := AllExact
	for i, p := range probes() {
		inexact := p.run(ctx, d, uint64(i))
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if lost := d.Err(); lost != nil {
			return 0, lost
		}
		if inexact != nil {
			exact &^= 1 << p.class
		}
	}
	return exact, nil
}

func (p probe) kernel() (*devgen.Kernel, error) {
	b := devgen.NewBuilder("probe_"+identifier(p.class), probeSize)
	from, to := b.Binding("from", devgen.Read), b.Binding("to", devgen.Write)
	i := b.MulAdd(b.Builtin(devgen.GroupX), b.U(probeSize), b.Builtin(devgen.LocalIndex))
	at := b.Mul(i, b.U(3))
	x, y, z := b.LoadF(from, at), b.LoadF(from, b.Add(at, b.U(1))), b.LoadF(from, b.Add(at, b.U(2)))
	b.Store(to, i, p.build(b, x, y, z))
	return b.Build()
}

// identifier returns the name of a class as an identifier of every target.
func identifier(c Class) string {
	return string(bytes.ReplaceAll([]byte(c.String()), []byte("-"), []byte("_")))
}

// run returns an error if the device's results are not those of the interpreter, or if it cannot
// run the kernel.
func (p probe) run(ctx context.Context, d Device, seed uint64) error {
	k, err := p.kernel()
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(seed, 20))
	from := make([]byte, 0, 12*probeCases)
	for i := range probeCases {
		for _, w := range p.cases(r, i) {
			from = binary.LittleEndian.AppendUint32(from, w)
		}
	}
	return Verify(ctx, d, k, [3]int{probeCases / probeSize, 1, 1}, [][]byte{from, make([]byte, 4*probeCases)}, nil)
}

// finite returns a float32 with an exponent between low and high, of 0 to 254.
func finite(r *rand.Rand, low, high uint32) uint32 {
	return r.Uint32()&(1<<31|1<<23-1) | (low+r.Uint32N(high-low+1))<<23
}

func normalCase(r *rand.Rand, _ int) [3]uint32 {
	return [3]uint32{finite(r, 97, 157), finite(r, 97, 157), finite(r, 97, 157)}
}

// positiveCase returns a positive number, a subnormal one in every fourth case.
func positiveCase(r *rand.Rand, i int) [3]uint32 {
	if i%4 == 0 {
		return [3]uint32{r.Uint32() & (1<<23 - 1)}
	}
	return [3]uint32{finite(r, 1, 254) &^ (1 << 31)}
}

// subnormalQuotient returns a dividend and a divisor, of which one or the quotient is subnormal.
func subnormalQuotient(r *rand.Rand, i int) [3]uint32 {
	switch i % 3 {
	case 0:
		return [3]uint32{r.Uint32()&(1<<31|1<<23-1) | 1, finite(r, 100, 130)}
	case 1:
		return [3]uint32{finite(r, 1, 60), r.Uint32()&(1<<31|1<<23-1) | 1}
	}
	return [3]uint32{finite(r, 30, 60), finite(r, 157, 187)}
}

// cancellingCase returns x, y and nearly -x*y, which shows whether the product was rounded.
func cancellingCase(r *rand.Rand, _ int) [3]uint32 {
	x, y := finite(r, 117, 137), finite(r, 117, 137)
	product := math.Float32frombits(x) * math.Float32frombits(y)
	return [3]uint32{x, y, math.Float32bits(-product) ^ r.Uint32N(2)}
}

// subnormalCase returns factors of a subnormal product, and a subnormal or small summand.
func subnormalCase(r *rand.Rand, i int) [3]uint32 {
	if i%4 == 0 {
		return [3]uint32{r.Uint32() & (1<<31 | 1<<23 - 1), finite(r, 120, 130), 0}
	}
	return [3]uint32{finite(r, 40, 70), finite(r, 50, 60), finite(r, 0, 2)}
}

// Mismatch is the error of Verify for results that differ.
type Mismatch struct {
	Kernel     string
	Binding    string
	Word       int // of the first difference
	Got, Want  uint32
	Words, All int // that differ; that were compared
	// Distance is the largest difference of the words as float32, relative to numbers above 1.
	Distance float64
}

func (m *Mismatch) Error() string {
	return fmt.Sprintf("kernel %s: %d of %d words of %s differ; word %d is %#08x, want %#08x", m.Kernel, m.Words,
		m.All, m.Binding, m.Word, m.Got, m.Want)
}
