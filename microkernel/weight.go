package microkernel

import (
	"fmt"
	"strings"
)

// WeightType is the type in which a weight matrix is stored. The names are those of GGUF.
type WeightType uint8

// The weight types. The zero value is F32.
const (
	F32 WeightType = iota
	F16
	BF16
	Q8_0   // blocks of 32: one f16 scale, 32 int8
	Q4_0   // blocks of 32: one f16 scale, 32 four-bit numbers minus 8
	Q4_1   // blocks of 32: f16 scale and offset, 32 four-bit numbers
	Q5_0   // blocks of 32: one f16 scale, 32 five-bit numbers minus 16
	Q5_1   // blocks of 32: f16 scale and offset, 32 five-bit numbers
	IQ4_NL // blocks of 32: one f16 scale, 32 indices of sixteen uneven levels
	Q2_K   // blocks of 256: two f16; per 16 a scale and an offset of four bits; two-bit numbers
	Q3_K   // blocks of 256: one f16; per 16 a scale of six bits; three-bit numbers minus 4
	Q4_K   // blocks of 256: two f16; per 32 a scale and an offset of six bits; four-bit numbers
	Q5_K   // blocks of 256: two f16; per 32 a scale and an offset of six bits; five-bit numbers
	Q6_K   // blocks of 256: one f16; per 16 a scale of eight bits; six-bit numbers minus 32
	weightTypes
)

// weightInfo is what a type looks like in a GGUF row and in a packed panel.
type weightInfo struct {
	name       string
	block      int // elements of k in one block; 1 for plain floats
	rowBytes   int // bytes of one block in a row of the raw tensor
	panelBytes int // bytes of one block of a packed panel, all 16 columns
}

var weightInfos = [weightTypes]weightInfo{
	F32:    {"f32", 1, 4, 64},
	F16:    {"f16", 1, 2, 32},
	BF16:   {"bf16", 1, 2, 32}, // stored in pairs of k, see Layout
	Q8_0:   {"q8_0", 32, 34, 32 + 512},
	Q4_0:   {"q4_0", 32, 18, 32 + 256},
	Q4_1:   {"q4_1", 32, 20, 64 + 256},
	Q5_0:   {"q5_0", 32, 22, 32 + 320},
	Q5_1:   {"q5_1", 32, 24, 64 + 320},
	IQ4_NL: {"iq4_nl", 32, 18, 32 + 256},
	Q2_K:   {"q2_k", 256, 84, 64 + 8*160},
	Q3_K:   {"q3_k", 256, 110, 32 + 8*224},
	Q4_K:   {"q4_k", 256, 144, 64 + 8*288},
	Q5_K:   {"q5_k", 256, 176, 64 + 8*352},
	Q6_K:   {"q6_k", 256, 210, 32 + 8*416},
}

func (t WeightType) known() bool { return t < weightTypes }

func (t WeightType) String() string {
	if t.known() {
		return weightInfos[t].name
	}
	return fmt.Sprintf("weight(%d)", uint8(t))
}

// ParseWeightType is the inverse of String. The error lists the types kernels exist for.
func ParseWeightType(s string) (WeightType, error) {
	var names []string
	for t := range weightTypes {
		if t.String() == s {
			return t, nil
		}
		names = append(names, t.String())
	}
	return 0, fmt.Errorf("no kernels for weight type %q (known: %s)", s, strings.Join(names, ", "))
}

// MarshalText and UnmarshalText let plan files spell a weight type by name.
func (t WeightType) MarshalText() ([]byte, error) {
	if !t.known() {
		return nil, fmt.Errorf("%s is no weight type", t)
	}
	return []byte(t.String()), nil
}

// UnmarshalText parses the name of a weight type.
func (t *WeightType) UnmarshalText(b []byte) (err error) {
	*t, err = ParseWeightType(string(b))
	return err
}

// Quantized says whether values share a scale per block.
func (t WeightType) Quantized() bool { return weightInfos[t].block > 1 }

// Block is the number of consecutive k of a quantization block: 1 for f32, f16 and bf16. K is a multiple of it, and so is every
// cut along k.
func (t WeightType) Block() int { return weightInfos[t].block }

// KStep is what a cut along k must be a multiple of in the packed layout: the block, or 2 for bf16, which is packed in pairs.
func (t WeightType) KStep() int {
	if t == BF16 {
		return 2
	}
	return t.Block()
}

// RowBytes is the length of a row of k elements in the raw GGUF tensor.
func (t WeightType) RowBytes(k int) int { return k / weightInfos[t].block * weightInfos[t].rowBytes }

// PanelWidth is the number of columns (rows of the weight matrix) of one packed panel: one AVX-512 vector.
const PanelWidth = 16

// Layout describes a weight matrix W[N, K] packed for the kernels. Panel p holds the rows 16p to 16p+15 of W, rows beyond N
// as zeros, at offset p*PanelStride. Within a panel k ascends:
//
//	f32    [K][16]float32
//	f16    [K][16]float16
//	bf16   [(K+1)/2][16][2]bfloat16          pairs of k; the second of the last pair is zero for odd K
//	q8_0   [K/32]{ [16]float16 d; [8][16][4]uint8 }    byte (g, column, i) is the value at k = 4g+i, plus 128
//	q4_0   [K/32]{ [16]float16 d; [4][16][4]uint8 }    byte (g, column, i): low nibble k = 8g+i, high nibble k = 8g+4+i
//	q4_1   [K/32]{ [16]float16 d, m; 4 bits }          iq4_nl as q4_0
//	q5_0   [K/32]{ [16]float16 d; 4 bits; 1 bit }      q5_1 as q5_0 with d, m
//	q2_k   [K/256]{ [16]float16 d, dmin; [8]{ [2][16]uint8 scale, offset<<4; 2 bits } }
//	q3_k   [K/256]{ [16]float16 d; [8]{ [2][16]int8 scale; 2 bits; 1 bit } }
//	q4_k   [K/256]{ [16]float16 d, dmin; [8]{ [16]uint8 scale; [16]uint8 offset; 4 bits } }    q5_k has 1 bit more
//	q6_k   [K/256]{ [16]float16 d; [8]{ [2][16]int8 scale; 4 bits; 2 bits } }
//
// "b bits" is a plane of b bits of 32 k, see blockForm. Four consecutive k of a column in one 32-bit word is what the integer dot
// products read; numbers without sign are the operand they want. The scales of the K types take whole bytes, which makes q3_k, q4_k and
// q5_k 2 to 4 percent longer than in the file and lets one instruction load sixteen of them.
type Layout struct {
	Type WeightType
	N, K int
}

// Validate says what is wrong with the layout.
func (l Layout) Validate() error {
	switch {
	case !l.Type.known():
		return fmt.Errorf("%s is no weight type", l.Type)
	case l.N < 1 || l.K < 1:
		return fmt.Errorf("a weight matrix of %d x %d has no elements", l.N, l.K)
	case l.K%l.Type.Block() != 0:
		return fmt.Errorf("k = %d is not a multiple of the %s block of %d", l.K, l.Type, l.Type.Block())
	}
	return nil
}

// Panels is the number of panels.
func (l Layout) Panels() int { return (l.N + PanelWidth - 1) / PanelWidth }

// panelBytes is the length of a panel up to k, without padding.
func (l Layout) panelBytes(k int) int { return PanelOffset(l.Type, k+k%l.Type.KStep()) }

// PanelOffset is the byte offset of element k of a panel; k is a multiple of KStep.
func PanelOffset(t WeightType, k int) int {
	return k / weightInfos[t].block * weightInfos[t].panelBytes
}

// PanelStride is the distance in bytes between panels. It is a multiple of 64, and never close to a multiple of 4096: kernels
// read several panels in step, and equal low address bits would throw them all into one set of the first-level cache.
func (l Layout) PanelStride() int {
	const page, near, shift = 4096, 320, 576
	n := (l.panelBytes(l.K) + 63) &^ 63
	if r := n % page; r < near || r > page-near {
		n += shift
	}
	return n
}

// Bytes is the size of the packed matrix.
func (l Layout) Bytes() int { return l.Panels() * l.PanelStride() }
