package microkernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"sandwich/microkernel/internal/ref"
	"sandwich/microkernel/qtype"
	"sandwich/runtime/gguf"
)

// rawWeights makes a random row-major tensor as GGUF stores it, and its exact values.
func rawWeights(r *rand.Rand, t WeightType, n, k int) (raw []byte, value func(n, k int) float32) {
	row := t.RowBytes(k)
	raw = make([]byte, n*row)
	u16 := func(at int) uint16 { return binary.LittleEndian.Uint16(raw[at:]) }
	switch t {
	case F32:
		for i := range n * k {
			binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(r.Float32()*2-1))
		}
		value = func(n, k int) float32 {
			return math.Float32frombits(binary.LittleEndian.Uint32(raw[n*row+4*k:]))
		}
	case F16:
		for i := range n * k {
			binary.LittleEndian.PutUint16(raw[2*i:], ref.HalfFromFloat(r.Float32()*2-1))
		}
		value = func(n, k int) float32 { return qtype.FloatFromHalf(u16(n*row + 2*k)) }
	case BF16:
		for i := range n * k {
			binary.LittleEndian.PutUint16(raw[2*i:], uint16(math.Float32bits(r.Float32()*2-1)>>16))
		}
		value = func(n, k int) float32 { return math.Float32frombits(uint32(u16(n*row+2*k)) << 16) }
	default:
		f, ok := rawForms[t]
		if !ok {
			fillSubBlocks(r, t, raw)
			return raw, dequantized(t, raw, k)
		}
		fillBlocks(r, t, raw)
		elems, bytes := t.Block(), t.RowBytes(t.Block())
		value = func(n, k int) float32 { return f.value(raw[n*row+k/elems*bytes:][:bytes], k%elems) }
	}
	return raw, value
}

// dequantized is the values of the types whose definition is what runtime/gguf reads, bit for bit
// that of their reference (TestDequantizeBlocks there).
func dequantized(t WeightType, raw []byte, k int) func(n, k int) float32 {
	all := make([]float32, len(raw)/t.RowBytes(k)*k)
	if err := gguf.Dequantize(all, gguf.Type(t), raw); err != nil {
		panic(err)
	}
	return func(n, i int) float32 { return all[n*k+i] }
}

// fillSubBlocks is fillBlocks for them: random bytes in place of numbers and scales inside the
// block, written once more with another scale of the block.
func fillSubBlocks(r *rand.Rand, t WeightType, raw []byte) {
	d := t.Desc()
	for ; len(raw) > 0; raw = raw[d.Bytes:] {
		block := raw[:d.Bytes]
		for i := range block {
			block[i] = byte(r.Uint32())
		}
		if len(d.BlockScales) == 0 {
			continue
		}
		half := someHalf(r)
		if d.ScaleRaw.Float == qtype.Brain {
			half = uint16(118+r.IntN(8)) << 7
		}
		subBlocks := make([]qtype.SubBlock, d.SubBlocks())
		for n := range subBlocks {
			d.Read(&subBlocks[n], block, n)
			subBlocks[n].BlockScales[0] = half
		}
		clear(block)
		for n, subBlock := range subBlocks {
			d.Write(block, subBlock, n)
		}
	}
}

// fillBlocks fills quantized blocks: any integers, halves between about 0.001 and 0.1, now and then
// zero, negative or denormal.
func fillBlocks(r *rand.Rand, t WeightType, raw []byte) {
	size := t.RowBytes(t.Block())
	for b := 0; b < len(raw); b += size {
		for i := range size {
			raw[b+i] = byte(r.Uint32())
		}
		for _, at := range rawForms[t].halves {
			binary.LittleEndian.PutUint16(raw[b+at:], someHalf(r))
		}
	}
}

func someHalf(r *rand.Rand) uint16 {
	scale := 0.001 + r.Float32()*0.1
	switch r.IntN(16) {
	case 0:
		scale = 0
	case 1:
		scale = -scale
	case 2:
		scale = 3e-7
	}
	return ref.HalfFromFloat(scale)
}

func allWeightTypes() []WeightType { return qtype.All() }

// TestPackRoundTrip packs in pieces, in place of poison, and reads every element back.
func TestPackRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, wt := range allWeightTypes() {
		for _, shape := range [][2]int{{16, 64}, {1, 32}, {17, 96}, {50, 160}, {33, 2048}} {
			n, k := shape[0], max(shape[1]/wt.Block(), 1)*wt.Block()
			if wt.Block() == 1 {
				k -= r.IntN(17)
			}
			t.Run(fmt.Sprintf("%s/%dx%d", wt, n, k), func(t *testing.T) {
				raw, value := rawWeights(r, wt, n, k)
				l := Layout{wt, n, k}
				packed := make([]byte, l.Bytes())
				for i := range packed {
					packed[i] = 0xA5
				}
				for n0 := 0; n0 < n; n0 += 32 {
					if err := Pack(packed, l, n0, min(n0+32, n), raw[n0*wt.RowBytes(k):], 0); err != nil {
						t.Fatal(err)
					}
				}
				got := make([]float32, k)
				for c := range n {
					if err := Unpack(got, packed, l, c, 0, k); err != nil {
						t.Fatal(err)
					}
					for i, g := range got {
						if want := value(c, i); g != want {
							t.Fatalf("column %d k %d: %v, want %v", c, i, g, want)
						}
					}
				}
				checkPadding(t, packed, l)
			})
		}
	}
}

// checkPadding checks that columns beyond N are zero, whatever the memory held before.
func checkPadding(t *testing.T, packed []byte, l Layout) {
	full := Layout{l.Type, l.Panels() * PanelWidth, l.K}
	got := make([]float32, l.K)
	for c := l.N; c < full.N; c++ {
		if err := Unpack(got, packed, full, c, 0, l.K); err != nil {
			t.Fatal(err)
		}
		for i, g := range got {
			if g != 0 {
				t.Fatalf("padding column %d k %d is %v", c, i, g)
			}
		}
	}
}

// TestPackCut packs a range of k out of a wider tensor.
func TestPackCut(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, wt := range allWeightTypes() {
		const n = 20
		unit := max(wt.Block(), 32)
		k, k0, k1 := 8*unit, 2*unit, 5*unit
		raw, value := rawWeights(r, wt, n, k)
		l := Layout{wt, n, k1 - k0}
		packed := make([]byte, l.Bytes())
		if err := Pack(packed, l, 0, n, raw[wt.RowBytes(k0):], wt.RowBytes(k)); err != nil {
			t.Fatal(err)
		}
		got := make([]float32, k1-k0)
		for c := range n {
			if err := Unpack(got, packed, l, c, 0, k1-k0); err != nil {
				t.Fatal(err)
			}
			for i, g := range got {
				if g != value(c, k0+i) {
					t.Fatalf("%s column %d k %d: %v, want %v", wt, c, k0+i, g, value(c, k0+i))
				}
			}
		}
	}
}

func TestPackRefusals(t *testing.T) {
	l := Layout{Q8_0, 40, 64}
	raw := make([]byte, 40*Q8_0.RowBytes(64))
	dst := make([]byte, l.Bytes())
	for name, err := range map[string]error{
		"k off the block":  Pack(dst, Layout{Q8_0, 40, 50}, 0, 40, raw, 0),
		"n0 inside panel":  Pack(dst, l, 8, 40, raw, 0),
		"n1 inside panel":  Pack(dst, l, 0, 24, raw, 0),
		"n1 beyond N":      Pack(dst, l, 0, 48, raw, 0),
		"raw too short":    Pack(dst, l, 0, 40, raw[1:], 0),
		"dst too short":    Pack(dst[1:], l, 0, 40, raw, 0),
		"stride too short": Pack(dst, l, 0, 40, raw, 8),
		"no columns":       Pack(dst, Layout{Q8_0, 0, 64}, 0, 0, raw, 0),
		"unknown type":     Pack(dst, Layout{qtype.Type(255), 40, 64}, 0, 40, raw, 0),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func BenchmarkPack(b *testing.B) {
	for _, wt := range allWeightTypes() {
		b.Run(wt.String(), func(b *testing.B) {
			l := Layout{wt, 1024, 4096}
			raw := make([]byte, 1024*wt.RowBytes(4096))
			dst := make([]byte, l.Bytes())
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if err := Pack(dst, l, 0, l.N, raw, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
