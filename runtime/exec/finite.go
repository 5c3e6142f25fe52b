package exec

import (
	"encoding/binary"
	"math"

	"sandwich/microkernel/qtype"
	"sandwich/runtime/gguf"
)

// finite says whether raw weights hold neither NaN nor infinity: every float of a plain type, the
// scales of a quantized one. Damaged files are refused when they are loaded, since a NaN that
// reaches the residual stream silences the model.
func finite(t gguf.Type, raw []byte) bool {
	d := t.Desc()
	switch d.Float {
	case qtype.Single:
		return finiteWords(raw)
	case qtype.Half:
		return finiteHalves(raw, 0x7C00)
	case qtype.Brain:
		return finiteHalves(raw, 0x7F80)
	}
	return d.Finite(raw)
}

// finiteWords looks at four pairs a step: a word whose exponent is all ones becomes zero, and only
// then borrows into the sign.
func finiteWords(raw []byte) bool {
	const exp, low, sign = 0x7F800000 * twice, 1 << 23 * twice, 1 << 31 * twice
	bad := uint64(0)
	for ; len(raw) >= 32; raw = raw[32:] {
		a, b := ^binary.LittleEndian.Uint64(raw)&exp-low, ^binary.LittleEndian.Uint64(raw[8:])&exp-low
		c, d := ^binary.LittleEndian.Uint64(raw[16:])&exp-low, ^binary.LittleEndian.Uint64(raw[24:])&exp-low
		bad |= a | b | c | d
	}
	for ; len(raw) >= 4; raw = raw[4:] {
		bad |= uint64(^binary.LittleEndian.Uint32(raw)&(exp&math.MaxUint32)) - low&math.MaxUint32
	}
	return bad&sign == 0
}

// twice is a word in both halves of another, times the word.
const twice = 1<<32 + 1

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
