package load

import (
	"encoding/binary"
	"math"

	"sandwich/microkernel/qtype"
	"sandwich/runtime/gguf"
)

// finite reports whether raw weights have neither NaN nor infinity: every element of a float type,
// the scales of a quantized type. Such files are refused, since a NaN in the residual stream makes
// all results NaN.
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

// finiteWords checks four pairs of words per iteration: a word whose exponent is all ones becomes
// zero, and only then the subtraction borrows into its sign bit.
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

// twice multiplies a 32-bit word into both halves of a 64-bit word.
const twice = 1<<32 + 1

func finiteHalves(raw []byte, exp uint64) bool {
	halves := exp | exp<<16 | exp<<32 | exp<<48
	low := uint64(1) | 1<<16 | 1<<32 | 1<<48
	bad := uint64(0)
	for len(raw) >= 8 {
		// A half whose exponent is all ones becomes zero here, and only then borrows below.
		v := ^binary.LittleEndian.Uint64(raw) & halves
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
