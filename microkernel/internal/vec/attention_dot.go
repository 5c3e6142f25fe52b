package vec

import (
	"fmt"
	"strings"

	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/ref"
)

// AttentionDot is the dot product by which attention multiplies scores and values. Its value is a
// kernel.Dot; the type exists for its spelling in plan files and flags.
//
// float32 computes chains of FMAs (DESIGN.md, rule 6). A dot product of bfloat16 rounds queries,
// keys, probabilities and values first, and adds as its instruction does. A dot product of integers
// quantizes queries and probabilities to eight bits and reads keys and values of KVQ8 as they are
// stored (attention_int8.go). Maxima, probabilities, their sums and the merging of blocks are
// float32 in every case.
type AttentionDot kernel.Dot

// The dot products of attention, named after their instructions.
const (
	AttendF32     = AttentionDot(kernel.NoDot)
	AttendDPBF16  = AttentionDot(kernel.DPBF16)
	AttendTDPBF16 = AttentionDot(kernel.TDPBF16)
	AttendDPBUSD  = AttentionDot(kernel.VNNI)
)

// AttentionDots lists the dot products of attention.
func AttentionDots() (out []AttentionDot) {
	for _, d := range kernel.AttentionDots() {
		out = append(out, AttentionDot(d))
	}
	return out
}

func (d AttentionDot) dot() kernel.Dot { return kernel.Dot(d) }

// String returns the name in flags and plan files.
func (d AttentionDot) String() string { return d.dot().AttentionName() }

// ParseAttentionDot is the inverse of String.
func ParseAttentionDot(s string) (AttentionDot, error) {
	var names []string
	for _, d := range AttentionDots() {
		if d.String() == s {
			return d, nil
		}
		names = append(names, d.String())
	}
	return 0, fmt.Errorf("attention dot product %.40q is not supported: use %s", s, strings.Join(names, ", "))
}

// MarshalText encodes a dot product by its name.
func (d AttentionDot) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses the name of a dot product.
func (d *AttentionDot) UnmarshalText(b []byte) (err error) {
	*d, err = ParseAttentionDot(string(b))
	return err
}

// Arithmetic returns the data type whose multiply-adds bound attention by d. The peak of bfloat16
// tiles is not measured; they are compared with float32.
func (d AttentionDot) Arithmetic() string {
	switch d {
	case AttendDPBF16:
		return kernel.ComputeBF16.Ceiling()
	case AttendDPBUSD:
		return kernel.ComputeInt8.Ceiling()
	}
	return kernel.ComputeF32.Ceiling()
}

// Exact reports whether attention has the same bits on every machine: sums of integer products are
// exact, and all else are operations of IEEE 754.
func (d AttentionDot) Exact() bool { return !d.bf16() }

// bf16 reports whether d rounds its operands to bfloat16.
func (d AttentionDot) bf16() bool { return d.dot().BF16() }

// Reads returns an error if d cannot read a cache of a type. Integer dot products need KVQ8, whose
// heads have a multiple of 32 dimensions.
func (d AttentionDot) Reads(t KVType) error {
	if d == AttendDPBUSD && t != KVQ8 {
		return fmt.Errorf("attention by %s multiplies integers and needs a %s KV cache, not %s", d, KVQ8, t)
	}
	return nil
}

// Needs returns the features that a CPU must have beyond the instruction set of the kernels.
func (d AttentionDot) Needs() kernel.Features { return d.dot().AttentionNeeds() }

// On reports whether the kernels of an instruction set have d on a CPU with the features. Plain Go
// has all dot products.
func (d AttentionDot) On(isa kernel.ISA, f kernel.Features) bool {
	return !isa.Generates() || f.Has(d.Needs()) && isa.Target().Attention.Rows(d.dot()) > 0
}

// runsOn returns an error if the instruction set or this host lacks the dot product.
func (d AttentionDot) runsOn(isa kernel.ISA, cpu kernel.Features) error {
	if d.On(isa, cpu) {
		return nil
	}
	return fmt.Errorf("attention by %s: %s on this host (%s) has no such dot product", d, isa, cpu)
}

// For returns the layout of a cache that attention by d reads.
func (l KVLayout) For(d AttentionDot) KVLayout {
	l.Rounded = l.Elem == KVF16 && d.bf16()
	return l
}

// refRound returns the values as the dot product reads them; magnitudes below minimum become zeros.
func (d AttentionDot) refRound(minimum float32, x []float32) []float32 {
	if !d.bf16() {
		return x
	}
	out := make([]float32, len(x))
	for i, e := range x {
		out[i] = ref.FromBF16(ref.RoundBF16(above(minimum, e)))
	}
	return out
}

// refSum defines a sum of n products by the dot product. at(i) returns the factors of product i,
// the first of which is already rounded.
func (d AttentionDot) refSum(n int, at func(i int) (x, y float32)) (sum float32) {
	switch d {
	case AttendDPBF16:
		for i := 0; i < n; i += 2 {
			x, y := refPair(n, i, at)
			sum = ref.DotPairX86(x, y, sum)
		}
	case AttendTDPBF16:
		const step = kernel.TileK
		for k := 0; k < n; k += step {
			pairs := (min(n, k+step) - k + 1) / 2
			sum = ref.DotTile(pairs, sum, func(i int) (x, y [2]float32) { return refPair(n, k+2*i, at) })
		}
	default:
		for i := range n {
			x, y := at(i)
			sum = ref.FMA32(x, y, sum)
		}
	}
	return sum
}

// refPair returns the factors i and i+1 of n, the second of each rounded to bfloat16, and zeros
// beyond the last.
func refPair(n, i int, at func(i int) (x, y float32)) (x, y [2]float32) {
	for j := range min(2, n-i) {
		a, b := at(i + j)
		x[j], y[j] = a, ref.FromBF16(ref.RoundBF16(b))
	}
	return x, y
}
