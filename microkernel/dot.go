package microkernel

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
)

// dotInfo is where a dot product belongs.
type dotInfo struct {
	name    string
	isas    []ISA
	compute Compute
	needs   Features // beyond those of the instruction set
}

var dots = [...]dotInfo{
	VNNI:    {"vnni", []ISA{AVX512}, ComputeInt8, HasVNNI},
	AVXVNNI: {"avxvnni", []ISA{AVX2}, ComputeInt8, HasAVXVNNI},
	MAdd:    {"madd", []ISA{AVX2, AVX512}, ComputeInt8, 0},
	MMLA:    {"mmla", []ISA{NEON}, ComputeInt8, HasDotProd | HasI8MM},
	SDot:    {"sdot", []ISA{NEON}, ComputeInt8, HasDotProd},
	MulL:    {"mull", []ISA{NEON}, ComputeInt8, 0},
	AMX:     {"amx", []ISA{AVX512}, ComputeInt8, HasAMX},
	MOPA:    {"mopa", []ISA{NEON}, ComputeInt8, HasSMEInt8},
	DPBF16:  {"dpbf16", []ISA{AVX512}, ComputeBF16, HasBF16},
	BFMMLA:  {"bfmmla", []ISA{NEON}, ComputeBF16, HasArmBF16},
	BFDot:   {"bfdot", []ISA{NEON}, ComputeBF16, HasArmBF16},
}

// known says that there is such a dot product, or none.
func (d Dot) known() bool { return int(d) < len(dots) }

// info is the row of the dot product; empty for NoDot and what is not known.
func (d Dot) info() dotInfo {
	if !d.known() {
		return dotInfo{}
	}
	return dots[d]
}

// on says that the instruction set has the dot product.
func (d Dot) on(isa ISA) bool { return slices.Contains(d.info().isas, isa) }

// dotNamed is the dot product of that name; NoDot where there is none.
func dotNamed(name string) Dot {
	for d, info := range dots {
		if info.name == name {
			return Dot(d)
		}
	}
	return NoDot
}
