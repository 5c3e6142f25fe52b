package qtype_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/microkernel/qtype"
	"sandwich/runtime/gguf"
)

// toy is a weight type for this test: six bits in fields of four and two, 64 elements per block,
// scales in four bits with offsets. It consists of its row only.
const toy qtype.Type = 250

func init() {
	err := qtype.Add(toy, qtype.Desc{
		Name: "toy6", Block: 64, Bytes: 4 + 4 + 32 + 16, BlockScales: []int{0, 2},
		Subs: qtype.NibbleSubs, SubK: 16,
		SubRaw: qtype.SubLayout{At: 4, Bytes: 4, Most: 15,
			Get: func(p []byte, n int) (a, b uint8) { return p[2*n], p[2*n+1] },
			Put: func(p []byte, n int, s [2]uint8) { p[2*n], p[2*n+1] = s[0], s[1] }},
		Fields: []qtype.BitField{{At: 8, Bits: 4, Run: 32}, {At: 40, Bits: 2, Run: 16}},
	})
	if err != nil {
		panic(err)
	}
}

// TestToyType checks that a row is sufficient to add a type: gguf writes and reads it, and every
// kernel of this host, generated or plain Go, packs and multiplies it with the bits of its values.
func TestToyType(t *testing.T) {
	const n, k, m = 19, 256, 5
	rng := rand.New(rand.NewPCG(6, 6))
	values := make([]float32, n*k)
	for i := range values {
		values[i] = float32(rng.NormFloat64())
	}
	raw := make([]byte, n*gguf.Type(toy).RowBytes(k))
	if err := gguf.Quantize(raw, gguf.Type(toy), values); err != nil {
		t.Fatal(err)
	}
	exact := make([]float32, n*k)
	if err := gguf.Dequantize(exact, gguf.Type(toy), raw); err != nil {
		t.Fatal(err)
	}
	for i := range exact {
		if diff := math.Abs(float64(exact[i] - values[i])); !(diff < 0.4) {
			t.Fatalf("element %d: %g became %g", i, values[i], exact[i])
		}
	}
	l := microkernel.Layout{Type: toy, N: n, K: k}
	packed := make([]byte, l.Bytes())
	if err := microkernel.Pack(packed, l, 0, n, raw, 0); err != nil {
		t.Fatal(err)
	}
	row := make([]float32, k)
	for c := range n {
		if err := microkernel.Unpack(row, packed, l, c, 0, k); err != nil {
			t.Fatal(err)
		}
		for i, x := range row {
			if x != exact[c*k+i] {
				t.Fatalf("row %d, element %d: packed as %g, is %g", c, i, x, exact[c*k+i])
			}
		}
	}
	for _, isa := range []microkernel.ISA{microkernel.AVX2, microkernel.AVX512, microkernel.NEON} {
		const all = ^microkernel.Features(0)
		for _, c := range []microkernel.Compute{microkernel.ComputeF32, microkernel.ComputeInt8} {
			for _, s := range every(20, microkernel.Space(all, isa, c, toy)) {
				if _, err := s.Assemble(); err != nil {
					t.Errorf("%s: %v", s, err)
				}
			}
		}
	}
	for _, isa := range microkernel.Host().ISAs() {
		for _, c := range []microkernel.Compute{microkernel.ComputeF32, microkernel.ComputeInt8} {
			multiplyToy(t, rng, microkernel.Space(microkernel.Host(), isa, c, toy), packed, l, m)
		}
	}
}

// every returns each n-th element of a list.
func every(n int, specs []microkernel.Spec) (out []microkernel.Spec) {
	for i := 0; i < len(specs); i += n {
		out = append(out, specs[i])
	}
	return out
}

// multiplyToy runs kernels of one compute path against their definition.
func multiplyToy(t *testing.T, rng *rand.Rand, specs []microkernel.Spec, packed []byte, l microkernel.Layout, m int) {
	t.Helper()
	if len(specs) == 0 {
		t.Fatal("no kernels for the toy type")
	}
	x := make([]float32, m*l.K)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	a, stride := unsafe.Pointer(&x[0]), 4*l.K
	if specs[0].Compute == microkernel.ComputeInt8 {
		rows := make([]microkernel.ActQ8, m*l.K/microkernel.ActQ8Block)
		for r := range m {
			at := unsafe.Pointer(&rows[r*l.K/microkernel.ActQ8Block])
			microkernel.RefVec().QuantizeRow(microkernel.ComputeInt8, &x[r*l.K], l.K, at)
		}
		a, stride = unsafe.Pointer(&rows[0]), microkernel.ActQ8RowBytes(l.K)
	}
	for _, s := range every(7, specs) {
		kernel, err := microkernel.Build(s)
		if err != nil {
			t.Fatal(err)
		}
		columns := min(s.NR, l.N)
		got, want := make([]float32, m*columns), make([]float32, m*columns)
		g := microkernel.GemmArgs{A: a, AStride: stride, B: unsafe.Pointer(&packed[0]), BStride: l.PanelStride(),
			C: unsafe.Pointer(&want[0]), CStride: 4 * columns, M: m, N: columns, K1: l.K}
		microkernel.RunRef(s, &g)
		g.C = unsafe.Pointer(&got[0])
		kernel.Run(&g)
		for j := range got {
			if got[j] != want[j] || want[j] == 0 {
				t.Fatalf("%s: element %d is %g, want %g", s, j, got[j], want[j])
			}
		}
	}
}

// TestAddRefuses checks that a description that the kernels cannot implement is refused and adds no
// type.
func TestAddRefuses(t *testing.T) {
	good := func() qtype.Desc { return *qtype.Q6_K.Desc() }
	for name, spoil := range map[string]func(*qtype.Desc){
		"no name":        func(d *qtype.Desc) { d.Name = "" },
		"odd block":      func(d *qtype.Desc) { d.Block = 40 },
		"three scales":   func(d *qtype.Desc) { d.BlockScales = []int{0, 2, 4} },
		"scale outside":  func(d *qtype.Desc) { d.BlockScales = []int{209} },
		"scales outside": func(d *qtype.Desc) { d.SubRaw.At = 200 },
		"three bits": func(d *qtype.Desc) {
			d.Fields = []qtype.BitField{{At: 0, Bits: 3,
				Run: 32}}
			d.ZeroPoint = 4
		},
		"field outside": func(d *qtype.Desc) {
			d.Fields = []qtype.BitField{{At: 100, Bits: 4,
				Run: 64}}
			d.ZeroPoint = 8
		},
		"run of seven": func(d *qtype.Desc) {
			d.Fields = []qtype.BitField{{At: 0, Bits: 4,
				Run: 7}}
			d.ZeroPoint = 8
		},
		"zero-point":          func(d *qtype.Desc) { d.ZeroPoint = 3 },
		"no offsets in pairs": func(d *qtype.Desc) { d.Subs = qtype.PairSubs },
		"no layout of scales": func(d *qtype.Desc) { d.SubRaw.Get = nil },
		"scales of eight":     func(d *qtype.Desc) { d.SubK = 8 },
		"a unit of three":     func(d *qtype.Desc) { d.Unit = 3 },
		"floats without unit": func(d *qtype.Desc) { d.Subs, d.BlockScales = qtype.FloatSubs, nil },
		"a shared zero-point": func(d *qtype.Desc) {
			d.Fields = []qtype.BitField{{Bits: 4, Run: 64}, {Bits: 2, Run: 32, Share: 4}}
		},
		"a float and numbers": func(d *qtype.Desc) { d.Float = qtype.Half },
	} {
		d := good()
		spoil(&d)
		if err := qtype.Add(251, d); err == nil || qtype.Type(251).Known() {
			t.Errorf("%s: accepted (%v)", name, err)
		}
	}
	if err := qtype.Add(qtype.Q6_K, good()); err == nil {
		t.Error("a second row of q6_k is accepted")
	}
}
