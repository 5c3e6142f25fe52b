package vec

import (
	"fmt"

	"sandwich/microkernel/internal/arith"
)

// KVType is the element type of a KV cache.
type KVType uint8

// The element types of a KV cache.
const (
	KVF16 KVType = iota
	KVF32
	KVQ8 // int8 with a float16 scale for 32 dimensions of a position
	kvTypes
)

var kvNames = [kvTypes]string{KVF16: "f16", KVF32: "f32", KVQ8: "q8_0"}

// String returns the name that flags and plans use.
func (t KVType) String() string {
	if t < kvTypes {
		return kvNames[t]
	}
	return fmt.Sprintf("kv(%d)", uint8(t))
}

// ParseKVType is the inverse of String.
func ParseKVType(s string) (KVType, error) {
	for i, n := range kvNames {
		if n == s {
			return KVType(i), nil
		}
	}
	return 0, fmt.Errorf("KV cache type %.40q is not supported: use f16, f32 or q8_0", s)
}

// MarshalText lets plan files spell a type by name.
func (t KVType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText parses the name of a type.
func (t *KVType) UnmarshalText(b []byte) (err error) {
	*t, err = ParseKVType(string(b))
	return err
}

// bytes returns the size of one element without its scale.
func (t KVType) bytes() int { return [kvTypes]int{KVF16: 2, KVF32: 4, KVQ8: 1}[t] }

// KVBlock is the number of positions in a block of the KV cache and the length of an attention
// block (DESIGN.md, rule 6): block b of a sequence holds the positions 64b to 64b+63.
const KVBlock = arith.BlockPositions

// KVLayout describes the memory of a block: 64 positions of one KV head of one layer. Both halves
// are packed GEMM weights (panels of 16 columns, k-major), so that scores and value products use
// the register tiles of GEMM:
//
//	K block  [64/16 panels of positions][headDim][16 positions]   weight of N = positions, K = headDim
//	V block  [headDim/16 panels of dims][64 positions][16 dims]   weight of N = headDim, K = positions
//
// In V the head dimension is padded to whole panels with zeros. A KVQ8 block has its scales after
// its elements (see kvScaleDims). Positions that were never stored are undefined: SoftmaxBlock
// ignores their scores (valid), and the value product must end at the last position that a row
// sees, because zero times infinity is not zero.
type KVLayout struct {
	HeadDim int
	Elem    KVType
	// Rounded rounds half-precision elements to bfloat16 when they are stored. Half precision
	// represents the eight bits of bfloat16 exactly, so that attention by a bfloat16 dot product
	// need not round what it reads.
	Rounded bool
}

const maxKVDim = 1024

// Check returns why no kernel supports the layout, or nil.
func (l KVLayout) Check() error {
	if l.HeadDim < 1 || l.HeadDim > maxKVDim {
		return fmt.Errorf("kv layout: head dimension %d is outside 1 to %d", l.HeadDim, maxKVDim)
	}
	if l.Elem >= kvTypes {
		return fmt.Errorf("kv layout: unknown element type %d", l.Elem)
	}
	if l.Elem == KVQ8 && l.HeadDim%kvScaleDims != 0 {
		return fmt.Errorf("a %s KV cache needs a head dimension that is a multiple of %d, not %d: use f16", l.Elem,
			kvScaleDims, l.HeadDim)
	}
	return nil
}

// KBytes returns the size of a K block.
func (l KVLayout) KBytes() int { return KVBlock*l.HeadDim*l.Elem.bytes() + l.scaleBytes() }

// VBytes returns the size of a V block.
func (l KVLayout) VBytes() int    { return KVBlock*l.paddedDim()*l.Elem.bytes() + l.scaleBytes() }
func (l KVLayout) paddedDim() int { return (l.HeadDim + lanes - 1) / lanes * lanes }

// kPanelBytes returns the distance between panels of 16 positions in a K block.
func (l KVLayout) kPanelBytes() int { return lanes * l.HeadDim * l.Elem.bytes() }

// kIndex returns the element index of dimension d of position pos (0 to 63) in a K block.
func (l KVLayout) kIndex(pos, d int) int {
	return (pos/lanes*l.HeadDim+d)*lanes + pos%lanes
}

// vIndex returns the element index of dimension d of position pos in a V block.
func (l KVLayout) vIndex(pos, d int) int {
	return (d/lanes*KVBlock+pos)*lanes + d%lanes
}

// wide returns the layout of a block dequantized to float32.
func (l KVLayout) wide() KVLayout { return KVLayout{HeadDim: l.HeadDim, Elem: KVF32} }

// A KVQ8 block has one byte for each element, in the order of kIndex or vIndex, followed by a
// float16 scale for every position and 32 of its dimensions:
//
//	K block  [64/16 panels][headDim][16 positions]int8   [headDim/32][64 positions]float16
//	V block  [headDim/16 panels][64 positions][16 dims]int8   [headDim/32][64 positions]float16
//
// A value is scale * integer, which float32 represents exactly: attention computes the bits it
// would compute on these values in float32.
const kvScaleDims = arith.ScaleDims

// scaleBytes returns the size of the scales of a K or V block.
func (l KVLayout) scaleBytes() int {
	if l.Elem != KVQ8 {
		return 0
	}
	return KVBlock * (l.HeadDim / kvScaleDims) * 2
}

// scaleOf returns the offset in bytes of the scale of element (pos, d) in a block.
func (l KVLayout) scaleOf(pos, d int) int { return KVBlock*l.HeadDim + 2*(d/kvScaleDims*KVBlock+pos) }
