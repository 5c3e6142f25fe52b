package kernel

import (
	"fmt"
	"strings"

	"sandwich/microkernel/qtype"
)

// Compute is the arithmetic of a weight. It belongs to the weight and never depends on the number
// of rows, the phase or the thread count (DESIGN.md, rule 6), because it decides the bits of the
// result.
type Compute uint8

// The compute paths.
const (
	// ComputeF32 is the chain "wide": C[m,n] is one chain of float32 FMAs over ascending k, of
	// A[m,k] and the exactly dequantized W[n,k].
	ComputeF32 Compute = iota
	// ComputeInt8 is the chain "block": activations are quantized in blocks of 32 (ActQ8). The
	// integer dot product of a block is exact, and one FMA adds it times the product of the two
	// scales, blocks ascending.
	ComputeInt8
	// ComputeBF16 is the chain "pair": activations are rounded to bfloat16, and a dot-product
	// instruction adds each pair of k, pairs ascending. Its rounding is that of the instruction
	// (actbf16.go), so a plan that uses it is not exact.
	ComputeBF16
	// ComputeInt8Superblock is the chain "group", for weights in blocks of 256: activations share
	// one scale over such a superblock (ActQ8Group), as in Q8_K of llama.cpp. One FMA by the scale
	// of the weights adds each exact integer dot product to the sum of the superblock, and one FMA
	// by the scale of the activations adds that sum, superblocks ascending.
	ComputeInt8Superblock
	// ComputeInt8K is the chain "integer", for weights in blocks of 256 whose sub-blocks have
	// integer scales: the sum of a superblock over its sub-blocks, of scale times dot product, is
	// an exact integer. One FMA adds it, rounded to float32, times the product of the superblock's
	// scale and that of the activations (ActQ8K); one FMA does so for the offsets, whose sum is
	// exact, too.
	ComputeInt8K
	// ComputeBF16Tile is the chain "tile": activations are rounded to bfloat16, and TDPBF16PS adds
	// 32 k at a time (ref.DotTile). Its rounding is that of the instruction, so a plan that uses it
	// is not exact.
	ComputeBF16Tile
	Computes // number of compute paths
)

// computeNames are stored in plan files and profiles.
var computeNames = [...]string{"f32", "int8", "bf16", "int8-256", "int8-k", "bf16-tile"}

// String returns the name of the path in plan files and flags.
func (c Compute) String() string {
	if c < Computes {
		return computeNames[c]
	}
	return fmt.Sprintf("compute(%d)", uint8(c))
}

// ParseCompute is the inverse of String.
func ParseCompute(s string) (Compute, error) {
	for i, n := range computeNames {
		if n == s {
			return Compute(i), nil
		}
	}
	return 0, fmt.Errorf("unknown compute path %q (known: %s)", s, strings.Join(computeNames[:], ", "))
}

// MarshalText encodes a compute path by its name.
func (c Compute) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText parses the name of a compute path.
func (c *Compute) UnmarshalText(b []byte) (err error) {
	*c, err = ParseCompute(string(b))
	return err
}

// Quantizes reports whether the path quantizes activations to int8 and multiplies integers.
func (c Compute) Quantizes() bool {
	return c == ComputeInt8 || c == ComputeInt8Superblock || c == ComputeInt8K
}

// RoundsBF16 reports whether the path rounds activations to bfloat16.
func (c Compute) RoundsBF16() bool { return c == ComputeBF16 || c == ComputeBF16Tile }

// Arithmetic returns the path whose measured rates apply to c: ComputeInt8 for all integer paths,
// ComputeBF16 for those of bfloat16.
func (c Compute) Arithmetic() Compute {
	switch {
	case c.Quantizes():
		return ComputeInt8
	case c.RoundsBF16():
		return ComputeBF16
	}
	return c
}

// Ceiling returns the name of the compute ceiling of the path in profiles.
func (c Compute) Ceiling() string { return c.Arithmetic().String() }

// Takes reports whether weights of a type may use the path.
func (c Compute) Takes(t qtype.Type) bool {
	switch c {
	case ComputeInt8:
		return t.Quantized()
	case ComputeInt8Superblock:
		return t.Quantized() && t.Block() == ActQ8Group
	case ComputeInt8K:
		d := t.Desc()
		return d.Block == ActQ8Group && d.Subs != qtype.FloatSubs && !(d.Affine() && d.Subs == qtype.NoSubs)
	case ComputeBF16, ComputeBF16Tile:
		return t == qtype.BF16
	}
	return true
}

// Exact reports whether the chain has the same bits on every machine (DESIGN.md, rule 6).
func (c Compute) Exact() bool { return !c.RoundsBF16() }

// KStep returns the number of k whose multiples are the possible cuts of a product along k: that
// of the type, or a step of the path's chain if it is longer.
func (c Compute) KStep(t qtype.Type) int {
	if c == ComputeBF16Tile {
		return TileK
	}
	return t.KStep()
}

// TileK is the number of k that one TDPBF16PS adds.
const TileK = 32

// ActRowBytes returns the length of a row of k activations in the form that the path reads. For a k
// inside the row it is the offset of element k.
func (c Compute) ActRowBytes(k int) int {
	switch c {
	case ComputeInt8, ComputeInt8Superblock:
		return ActQ8RowBytes(k)
	case ComputeInt8K:
		return ActQ8KRowBytes(k)
	case ComputeBF16:
		return ActBF16RowBytes(k)
	case ComputeBF16Tile:
		return 2 * ((k + TileK - 1) / TileK * TileK)
	}
	return 4 * k
}
