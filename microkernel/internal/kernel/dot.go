package kernel

import "slices"

// Dot is the dot product a kernel of the int8 or the bf16 path is made of. Those of integers all give the same bits, and those of bfloat16 on
// one architecture.
type Dot uint8

// The dot products.
const (
	NoDot   Dot = iota // an f32 kernel, or plain Go
	VNNI               // VPDPBUSD on 512 bits
	AVXVNNI            // VPDPBUSD on 256 bits, VEX encoded
	MAdd               // VPMADDUBSW and VPMADDWD
	MMLA               // arm64 SMMLA, two rows by two columns, eight k
	SDot               // arm64 SDOT
	MulL               // arm64 SMULL and SADALP
	AMX                // TDPBSSD on tile registers
	MOPA               // SMOPA of SME: outer products of four k
	DPBF16             // VDPBF16PS
	BFMMLA             // arm64 BFMMLA, two rows by two columns, four k
	BFDot              // arm64 BFDOT
	Dots               // their number
)

// dotInfo is what the rest of the program knows of a dot product; which instruction sets have it their targets say.
type dotInfo struct {
	name    string
	compute Compute
	needs   Features // beyond those of the instruction set
	matrix  bool     // of a matrix unit
	words   bool     // sums of two products have sixteen bits
	odd     bool     // rounds to odd (RoundsToOdd)
}

var dots = [Dots]dotInfo{
	VNNI:    {name: "vnni", compute: ComputeInt8, needs: HasVNNI},
	AVXVNNI: {name: "avxvnni", compute: ComputeInt8, needs: HasAVXVNNI},
	MAdd:    {name: "madd", compute: ComputeInt8, words: true},
	MMLA:    {name: "mmla", compute: ComputeInt8, needs: HasDotProd | HasI8MM},
	SDot:    {name: "sdot", compute: ComputeInt8, needs: HasDotProd},
	MulL:    {name: "mull", compute: ComputeInt8},
	AMX:     {name: "amx", compute: ComputeInt8, needs: HasAMX, matrix: true},
	MOPA:    {name: "mopa", compute: ComputeInt8, needs: HasSMEInt8, matrix: true},
	DPBF16:  {name: "dpbf16", compute: ComputeBF16, needs: HasBF16},
	BFMMLA:  {name: "bfmmla", compute: ComputeBF16, needs: HasArmBF16, odd: true},
	BFDot:   {name: "bfdot", compute: ComputeBF16, needs: HasArmBF16, odd: true},
}

// known says that there is such a dot product, or none.
func (d Dot) known() bool { return d < Dots }

// info is the row of the dot product; empty for NoDot and what is not known.
func (d Dot) info() dotInfo {
	if !d.known() {
		return dotInfo{}
	}
	return dots[d]
}

// on says that the instruction set has the dot product.
func (d Dot) on(isa ISA) bool { return slices.Contains(isa.Target().Dots(), d) }

// String is the name that specs have.
func (d Dot) String() string { return d.info().name }

// SumsWords says that sums of two products have sixteen bits, so that numbers of eight bits need more instructions.
func (d Dot) SumsWords() bool { return d.info().words }

// RoundsToOdd says that sums of bfloat16 products are rounded to odd, rather than each product to nearest.
func (d Dot) RoundsToOdd() bool { return d.info().odd }

// dotNamed is the dot product of that name; NoDot where there is none.
func dotNamed(name string) Dot {
	for d, info := range dots {
		if info.name == name {
			return Dot(d)
		}
	}
	return NoDot
}
