package kernel

import (
	"fmt"
	"slices"

	"sandwich/microkernel/internal/arith"
)

// Dot is a dot-product instruction of GEMM kernels or attention. Integer dot products all give the
// same bits; those of bfloat16 give the same bits within one architecture.
type Dot uint8

// The dot products. Plan files store their names (String, AttentionName), never these numbers.
const (
	NoDot   Dot = iota // chains of float32 FMAs, or plain Go
	VNNI               // VPDPBUSD on 512 bits
	AVXVNNI            // VPDPBUSD on 256 bits, VEX encoded
	MAdd               // VPMADDUBSW and VPMADDWD
	MMLA               // arm64 SMMLA: two rows by two columns, eight k
	SDot               // arm64 SDOT
	MulL               // arm64 SMULL and SADALP
	AMX                // TDPBSSD on tile registers
	MOPA               // SMOPA of SME: outer products of four k
	DPBF16             // VDPBF16PS: two FMAs for each pair of k, the second of the pair first
	BFMMLA             // arm64 BFMMLA: two rows by two columns, four k
	BFDot              // arm64 BFDOT
	TDPBF16            // TDPBF16PS on tile registers: 32 k, even and odd ones in separate chains
)

// DotInfo describes a dot product to the packages that do not generate code.
type DotInfo struct {
	Name           string   // in kernel specs; "" if GEMM kernels have none with it
	AttentionName  string   // in plan files and flags; "" if attention has none with it
	Compute        Compute  // the path of the kernels that use it
	Needs          Features // of GEMM kernels, beyond those of the instruction set
	AttentionNeeds Features // of attention, beyond those of the instruction set
	MatrixUnit     bool     // the instruction multiplies tiles
	Sums16         bool     // sums of two products have sixteen bits
	RoundsToOdd    bool     // sums of bfloat16 products are rounded to odd, not to nearest
}

// dots describes the dot products, by number.
var dots = []DotInfo{
	NoDot:   {AttentionName: "f32"},
	VNNI:    {Name: "vnni", AttentionName: "dpbusd", Compute: ComputeInt8, Needs: HasVNNI, AttentionNeeds: HasVNNI},
	AVXVNNI: {Name: "avxvnni", Compute: ComputeInt8, Needs: HasAVXVNNI},
	MAdd:    {Name: "madd", Compute: ComputeInt8, Sums16: true},
	MMLA:    {Name: "mmla", Compute: ComputeInt8, Needs: HasDotProd | HasI8MM},
	SDot:    {Name: "sdot", Compute: ComputeInt8, Needs: HasDotProd},
	MulL:    {Name: "mull", Compute: ComputeInt8},
	AMX:     {Name: "amx", Compute: ComputeInt8, Needs: HasAMX, MatrixUnit: true},
	MOPA:    {Name: "mopa", Compute: ComputeInt8, Needs: HasSMEInt8, MatrixUnit: true},
	DPBF16: {Name: "dpbf16", AttentionName: "dpbf16", Compute: ComputeBF16, Needs: HasBF16,
		AttentionNeeds: HasBF16},
	BFMMLA: {Name: "bfmmla", Compute: ComputeBF16, Needs: HasArmBF16, RoundsToOdd: true},
	BFDot:  {Name: "bfdot", Compute: ComputeBF16, Needs: HasArmBF16, RoundsToOdd: true},
	TDPBF16: {Name: "tdpbf16", AttentionName: "tdpbf16", Compute: ComputeBF16Tile, Needs: HasBF16 | HasAMX,
		AttentionNeeds: HasBF16 | HasAMX, MatrixUnit: true},
}

// attentionDots lists the dot products of attention in the order of lists for users.
var attentionDots = []Dot{NoDot, DPBF16, TDPBF16, VNNI}

// RegisterDot adds a dot product and returns its number. It is for package initialization: no other
// function of this package may run at the same time.
func RegisterDot(info DotInfo) Dot {
	dots = append(dots, info)
	d := Dot(len(dots) - 1)
	if info.AttentionName != "" {
		attentionDots = append(attentionDots, d)
	}
	return d
}

// known reports whether d is the number of a dot product.
func (d Dot) known() bool { return int(d) < len(dots) }

// info returns the description of d, empty for unknown ones.
func (d Dot) info() DotInfo {
	if !d.known() {
		return DotInfo{}
	}
	return dots[d]
}

// String returns the name of d in kernel specs.
func (d Dot) String() string { return d.info().Name }

// AttentionName returns the name of d as a dot product of attention in plan files and flags.
func (d Dot) AttentionName() string {
	if name := d.info().AttentionName; name != "" {
		return name
	}
	return fmt.Sprintf("attention(%d)", uint8(d))
}

// AttentionNeeds returns the features that attention by d needs beyond those of the instruction
// set.
func (d Dot) AttentionNeeds() Features { return d.info().AttentionNeeds }

// AttentionDots lists the dot products that attention may use.
func AttentionDots() []Dot { return slices.Clone(attentionDots) }

// SumsWords reports whether sums of two products have sixteen bits, so that eight-bit weights need
// more instructions.
func (d Dot) SumsWords() bool { return d.info().Sums16 }

// RoundsToOdd reports whether sums of bfloat16 products are rounded to odd rather than each product
// to nearest.
func (d Dot) RoundsToOdd() bool { return d.info().RoundsToOdd }

// BF16 reports whether d multiplies bfloat16.
func (d Dot) BF16() bool { return d.info().Compute.RoundsBF16() }

// Least returns the magnitudes below which attention by d replaces elements of queries and
// probabilities by zeros.
func (d Dot) Least() (query, probability float32) {
	if !d.BF16() {
		return 0, 0
	}
	return arith.LeastQuery, arith.LeastProbability
}

// dotNamed returns the dot product of that name in kernel specs, or NoDot.
func dotNamed(name string) Dot {
	for d, info := range dots {
		if info.Name == name && name != "" {
			return Dot(d)
		}
	}
	return NoDot
}
