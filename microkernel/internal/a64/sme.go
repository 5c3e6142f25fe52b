package a64

// P is a predicate register of SVE, 0 to 15.
type P uint8

func (p P) operand() (class, int) { return predicate, int(p) }

// scalable are the fields of SVE and SME operands by the name they have in a syntax.
var scalable = map[string]field{
	"Zt": scalableAt(vector, "z", 0, 32), "Zd": scalableAt(vector, "z", 0, 32), "Zn": scalableAt(vector, "z", 5, 32), "Zm": scalableAt(vector, "z", 16, 32),
	"Pd": scalableAt(predicate, "p", 0, 16), "Pg": scalableAt(predicate, "p", 10, 8), "Pm": scalableAt(predicate, "p", 13, 8),
	"Td": tileAt(0), "Tt": tileAt(2), "Tn": tileAt(7),
}

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

// The scalable matrix extension, and what SVE has to offer in streaming mode. A slice of a tile is named by w12, h for a row and v for a
// column.
var (
	SMSTART = defAt(SME, 0xD503477F, "smstart")
	SMSTOP  = defAt(SME, 0xD503467F, "smstop")
	ZEROZA  = defAt(SME, 0xC00800FF, "zero {za}")
	WHILELO = defAt(SME, 0x25A01C00, "whilelo %Pd.s, %Xn, %Xm")
	LD1W    = defAt(SME, 0xA540A000, "ld1w {%Zt.s}, %Pg/z, [%Yn]")
	LD1ZA   = defAt(SME, 0xE09F0000, "ld1w {za%Tth.s[w12, 0]}, %Pg/z, [%Yn]")
	ST1ZA   = defAt(SME, 0xE0BF0000, "st1w {za%Tth.s[w12, 0]}, %Pg, [%Yn]")
	COLUMN  = defAt(SME, 0xC0828000, "mova %Zd.s, %Pg/m, za%Tnv.s[w12, 0]")
	FMOPA   = defAt(SME, 0x80800000, "fmopa za%Td.s, %Pg/m, %Pm/m, %Zn.s, %Zm.s")
)
