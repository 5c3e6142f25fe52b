package load

import (
	"encoding/binary"
	"math"
	"testing"

	"sandwich/microkernel/qtype"
	"sandwich/runtime/gguf"
)

// TestFinite checks that finite detects one damaged number of every type at every position.
func TestFinite(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, c := range []struct {
		typ   gguf.Type
		width int      // of one number
		bad   []uint32 // as bits
		good  []uint32 // the largest that are numbers
	}{
		{gguf.F32, 4, []uint32{math.Float32bits(nan), math.Float32bits(inf), 0x7F800001}, []uint32{0x7F7FFFFF,
			0xFF7FFFFF, 0, 1}},
		{gguf.F16, 2, []uint32{0x7C00, 0xFC00, 0x7E00, 0x7C01}, []uint32{0x7BFF, 0xFBFF, 0, 1, 0x03FF}},
		{gguf.BF16, 2, []uint32{0x7F80, 0xFF80, 0x7FC0, 0x7F81}, []uint32{0x7F7F, 0xFF7F, 0, 1, 0x7C00}},
	} {
		for _, count := range []int{1, 3, 4, 7, 8, 9, 33} {
			raw := make([]byte, count*c.width)
			put := func(i int, bits uint32) {
				if c.width == 4 {
					binary.LittleEndian.PutUint32(raw[4*i:], bits)
				} else {
					binary.LittleEndian.PutUint16(raw[2*i:], uint16(bits))
				}
			}
			for i := range count {
				for k, bits := range c.good {
					put(i, bits)
					put((i+k)%count, c.good[k])
				}
			}
			if !finite(c.typ, raw) {
				t.Errorf("%s: %x is all numbers", c.typ, raw)
			}
			for i := range count {
				for _, bits := range c.bad {
					put(i, bits)
					if finite(c.typ, raw) {
						t.Errorf("%s: %x at %d of %d was not noticed", c.typ, bits, i, count)
					}
					put(i, c.good[0])
				}
			}
		}
	}
}

// TestFiniteScales does the same with the scales of quantized blocks, found by their effect on the
// dequantized values; no other byte may matter.
func TestFiniteScales(t *testing.T) {
	for _, w := range qtype.All() {
		if !w.Quantized() {
			continue
		}
		typ, offsets := gguf.Type(w), w.Desc().BlockScales
		elems, size := typ.Block()
		const blocks = 3
		clean := make([]byte, blocks*size)
		src := make([]float32, blocks*elems)
		for i := range src {
			src[i] = float32(i%7) - 3
		}
		if err := gguf.Quantize(clean, typ, src); err != nil {
			t.Fatal(err)
		}
		if !finite(typ, clean) {
			t.Errorf("%s: sound blocks are refused", typ)
		}
		out := make([]float32, len(src))
		for at := 0; at < size; at += 2 { // scales are aligned
			raw := append([]byte(nil), clean...)
			binary.LittleEndian.PutUint16(raw[size+at:], 0xFFFF) // a NaN, if it is a float16
			if err := gguf.Dequantize(out, typ, raw); err != nil {
				t.Fatal(err)
			}
			broken := false
			for _, x := range out {
				broken = broken || math.IsNaN(float64(x)) || math.IsInf(float64(x), 0)
			}
			if finite(typ, raw) == broken {
				t.Errorf("%s: with a NaN at byte %d of a block, values that are not numbers: %v, and finite "+
					"says otherwise", typ, at, broken)
			}
		}
		if len(offsets) == 0 && w.Desc().Subs != qtype.FloatSubs { // whose bytes are all numbers
			t.Errorf("%s has no scales", typ)
		}
	}
}
