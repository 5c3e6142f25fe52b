package exec

import (
	"encoding/binary"

	"sandwich/runtime/gguf"
)

// scaleOffsets are where a block of a quantized type keeps its float16 scales, in bytes; all other bytes are integers.
var scaleOffsets = map[gguf.Type][]int{
	gguf.Q8_0: {0}, gguf.Q4_0: {0}, gguf.Q5_0: {0}, gguf.IQ4_NL: {0}, gguf.Q4_1: {0, 2}, gguf.Q5_1: {0, 2},
	gguf.Q2_K: {80, 82}, gguf.Q3_K: {108}, gguf.Q4_K: {0, 2}, gguf.Q5_K: {0, 2}, gguf.Q6_K: {208},
}

// finite says whether raw weights hold neither NaN nor infinity: every float of a plain type, the scales of a quantized
// one. Damaged files are refused when they are loaded, since a NaN that reaches the residual stream silences the model.
func finite(t gguf.Type, raw []byte) bool {
	switch t {
	case gguf.F32:
		return finiteWords(raw)
	case gguf.F16:
		return finiteHalves(raw, 0x7C00)
	case gguf.BF16:
		return finiteHalves(raw, 0x7F80)
	}
	scales := scaleOffsets[t]
	for _, block := t.Block(); len(raw) >= block; raw = raw[block:] {
		for _, at := range scales {
			if binary.LittleEndian.Uint16(raw[at:])&0x7C00 == 0x7C00 {
				return false
			}
		}
	}
	return true
}

func finiteWords(raw []byte) bool {
	const exp = 0x7F800000
	bad := false
	for len(raw) >= 8 {
		v := binary.LittleEndian.Uint64(raw)
		bad = bad || uint32(v)&exp == exp || uint32(v>>32)&exp == exp
		raw = raw[8:]
	}
	return !bad && (len(raw) < 4 || binary.LittleEndian.Uint32(raw)&exp != exp)
}

func finiteHalves(raw []byte, exp uint64) bool {
	lanes := exp | exp<<16 | exp<<32 | exp<<48
	low := uint64(1) | 1<<16 | 1<<32 | 1<<48
	bad := uint64(0)
	for len(raw) >= 8 {
		// A lane whose exponent is all ones becomes zero here, and only then borrows below.
		v := ^binary.LittleEndian.Uint64(raw) & lanes
		bad |= (v - low) &^ v & (low << 15)
		raw = raw[8:]
	}
	for ; len(raw) >= 2; raw = raw[2:] {
		if uint64(binary.LittleEndian.Uint16(raw))&exp == exp {
			return false
		}
	}
	return bad == 0
}
