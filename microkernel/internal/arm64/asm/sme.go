package asm

import "sync"

// P is a predicate register of SVE, 0 to 15.
type P uint8

func (p P) operand() (class, int) { return predicate, int(p) }

// scalable are the fields of SVE and SME operands by the name they have in a syntax.
var scalable = sync.OnceValue(func() map[string]field {
	return map[string]field{
		"Zt": scalableAt(vector, "z", 0, 32), "Zd": scalableAt(vector, "z", 0, 32),
		"Zn": scalableAt(vector, "z", 5, 32), "Zm": scalableAt(vector, "z", 16, 32),
		"Pd": scalableAt(predicate, "p", 0, 16), "Pg": scalableAt(predicate, "p", 10, 8),
		"Pm": scalableAt(predicate, "p", 13, 8),
		"Td": tileAt(0), "Tt": tileAt(2), "Tn": tileAt(7),
		// the tile of zero, a mask of 64-bit tiles; a row or column beyond the one in w12; the lane
		// of a broadcast; a byte in every lane
		"Tz": {class: number, encode: func(v int) (uint32, bool) { return 0x11 << v, v >= 0 && v < 4 },
			values: []int{0, 1, 2, 3}},
		"Off": {class: number, encode: unsigned(2, 1, 5).encode, values: []int{0, 1, 2, 3}},
		"To":  {class: number, encode: unsigned(2, 1, 0).encode, values: []int{0, 1, 2, 3}},
		"Lane": {
			class: number, encode: func(v int) (uint32, bool) {
				return uint32(v>>2)<<22 | uint32(v&3)<<19,
					v >= 0 && v < 16
			},
			values: []int{0, 3, 4, 9, 15},
		},
		"B8": {class: number, prefix: "#", encode: signed(8, 1, 5).encode, values: []int{0, 1, 15, 127, -128}},
	}
})

func scalableAt(c class, prefix string, at, n int) field {
	return field{class: c, prefix: prefix, encode: func(v int) (uint32, bool) { return uint32(v) << at, v < n }}
}

// tileAt is the number of one of the four tiles of 32-bit elements.
func tileAt(at int) field {
	return field{
		class: number, encode: func(v int) (uint32, bool) { return uint32(v) << at, v >= 0 && v < 4 },
		values: []int{0, 1, 2, 3},
	}
}

// The scalable matrix extension. A slice of a tile is named by w12, h for a row and v for a column.
var (
	SMSTART  = defAt(SME, 0xD503477F, "smstart")
	SMSTOP   = defAt(SME, 0xD503467F, "smstop")
	ZEROZA   = defAt(SME, 0xC00800FF, "zero {za}")
	ZEROTILE = defAt(SME, 0xC0080000, "zero {za%Tz.s}")
	LD1ZA    = defAt(SME, 0xE09F0000, "ld1w {za%Tth.s[w12, 0]}, %Pg/z, [%Yn]")
	ST1ZA    = defAt(SME, 0xE0BF0000, "st1w {za%Tth.s[w12, 0]}, %Pg, [%Yn]")
	ROW      = defAt(SME, 0xC0820000, "mova %Zd.s, %Pg/m, za%Tnh.s[w12, %Off]")
	TOROW    = defAt(SME, 0xC0800000, "mova za%Tth.s[w12, %To], %Pg/m, %Zn.s")
	COLUMN   = defAt(SME, 0xC0828000, "mova %Zd.s, %Pg/m, za%Tnv.s[w12, %Off]")
	FMOPA    = defAt(SME, 0x80800000, "fmopa za%Td.s, %Pg/m, %Pm/m, %Zn.s, %Zm.s")
	SMOPA    = defAt(SME, 0xA0800000, "smopa za%Td.s, %Pg/m, %Pm/m, %Zn.b, %Zm.b")
)

// What SVE has to offer in streaming mode, where the Advanced SIMD instructions are undefined.
var (
	WHILELO  = defAt(SME, 0x25A01C00, "whilelo %Pd.s, %Xn, %Xm")
	WHILELOB = defAt(SME, 0x25201C00, "whilelo %Pd.b, %Xn, %Xm")
	LD1W     = defAt(SME, 0xA540A000, "ld1w {%Zt.s}, %Pg/z, [%Yn]")
	LD1H     = defAt(SME, 0xA4C0A000, "ld1h {%Zt.s}, %Pg/z, [%Yn]")
	LD1B     = defAt(SME, 0xA440A000, "ld1b {%Zt.s}, %Pg/z, [%Yn]")
	LD1SB    = defAt(SME, 0xA5A0A000, "ld1sb {%Zt.s}, %Pg/z, [%Yn]")
	ST1W     = defAt(SME, 0xE540E000, "st1w {%Zt.s}, %Pg, [%Yn]")
	ZDUPB    = defAt(SME, 0x2538C000, "dup %Zd.b, %B8")
	ZDUPS    = defAt(SME, 0x05242000, "dup %Zd.s, %Zn.s[%Lane]")
	ZTBL     = defAt(SME, 0x05203000, "tbl %Zd.b, {%Zn.b}, %Zm.b")
	ZAND     = defAt(SME, 0x04203000, "and %Zd.d, %Zn.d, %Zm.d")
	ZEOR     = defAt(SME, 0x04A03000, "eor %Zd.d, %Zn.d, %Zm.d")
	ZORR     = defAt(SME, 0x04603000, "orr %Zd.d, %Zn.d, %Zm.d")
	ZSUBB    = defAt(SME, 0x04200400, "sub %Zd.b, %Zn.b, %Zm.b")
	ZLSRB    = defAt(SME, 0x04209400, "lsr %Zd.b, %Zn.b, %r8")
	ZLSLB    = defAt(SME, 0x04209C00, "lsl %Zd.b, %Zn.b, %l8")
	ZLSRS    = defAt(SME, 0x04609400, "lsr %Zd.s, %Zn.s, %r32")
	ZASRS    = defAt(SME, 0x04609000, "asr %Zd.s, %Zn.s, %r32")
	ZLSLS    = defAt(SME, 0x04609C00, "lsl %Zd.s, %Zn.s, %l32")
	ZSDOT    = defAt(SME, 0x44800000, "sdot %Zd.s, %Zn.b, %Zm.b")
	ZFCVT    = defAt(SME, 0x6589A000, "fcvt %Zd.s, %Pg/m, %Zn.h")
	ZSCVTF   = defAt(SME, 0x6594A000, "scvtf %Zd.s, %Pg/m, %Zn.s")
	ZUCVTF   = defAt(SME, 0x6595A000, "ucvtf %Zd.s, %Pg/m, %Zn.s")
	ZFMUL    = defAt(SME, 0x65800800, "fmul %Zd.s, %Zn.s, %Zm.s")
	ZFMLA    = defAt(SME, 0x65A00000, "fmla %Zd.s, %Pg/m, %Zn.s, %Zm.s")
	ZFMLS    = defAt(SME, 0x65A02000, "fmls %Zd.s, %Pg/m, %Zn.s, %Zm.s")
)
