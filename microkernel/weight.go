package microkernel

import (
	"fmt"

	"sandwich/microkernel/qtype"
)

// WeightType is the type in which a weight matrix is stored. Package qtype describes its layout.
type WeightType = qtype.Type

// The weight types. The zero value is F32.
const (
	F32    = qtype.F32
	F16    = qtype.F16
	BF16   = qtype.BF16
	Q8_0   = qtype.Q8_0
	Q4_0   = qtype.Q4_0
	Q4_1   = qtype.Q4_1
	Q5_0   = qtype.Q5_0
	Q5_1   = qtype.Q5_1
	IQ4_NL = qtype.IQ4_NL
	Q2_K   = qtype.Q2_K
	Q3_K   = qtype.Q3_K
	Q4_K   = qtype.Q4_K
	Q5_K   = qtype.Q5_K
	Q6_K   = qtype.Q6_K
)

// ParseWeightType is the inverse of WeightType's String. The error lists the types kernels exist
// for.
func ParseWeightType(s string) (WeightType, error) { return qtype.Parse(s) }

// PanelWidth is the number of columns (rows of the weight matrix) of one packed panel: one AVX-512
// vector.
const PanelWidth = qtype.PanelWidth

// Layout describes a weight matrix W[N, K] packed for the kernels. Panel p holds the rows 16p to
// 16p+15 of W, rows beyond N as zeros, at offset p*PanelStride. Within a panel k ascends:
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
//	iq4_xs [K/256]{ [16]float16 d; [8]{ [16]int8 scale; 4 bits } }    iq3_s, iq3_xxs too; iq1_s has 2 bits
//	iq2_xs [K/256]{ [16]float16 d; [8]{ [16]uint8 two scales; 2 bits; 1 bit } }    iq2_s too
//	iq2_xxs [K/256]{ [16]float16 d; [8]{ 2 bits; 1 bit with a scale in it } }
//	iq1_m  [K/256]{ [16]float16 d; [8]{ [16]uint8 two scales; 2 bits; [16]uint8 a bit for four k } }
//	tq2_0  [K/256]{ [16]float16 d; [8]{ 2 bits } }    tq1_0 too; q2_0 and q1_0 in blocks of 64 and 128
//	mxfp4  [K/32]{ [16]bfloat16 d; 4 bits }
//	nvfp4  [K/64][2]{ [2][16]uint8 scale; 4 bits }
//
// "b bits" is a plane of b bits of 32 k, see package qtype. Integer dot products read four
// consecutive k of a column, numbers without sign, in one 32-bit word. Numbers of codebook types
// are the digits of their words (qtype/words.go), so that no kernel looks a word up; the panels are
// 1.0 to 1.5 times as long as the rows in the file. The scales of the K types take whole bytes, so
// that one instruction loads sixteen of them.
type Layout struct {
	Type WeightType
	N, K int
}

// Validate returns why no matrix has the layout, or nil.
func (l Layout) Validate() error {
	switch {
	case !l.Type.Known():
		return fmt.Errorf("weight type %s is unknown", l.Type)
	case l.N < 1 || l.K < 1:
		return fmt.Errorf("a weight matrix of %d x %d has no elements", l.N, l.K)
	case l.K%l.Type.Block() != 0:
		return fmt.Errorf("k = %d is not a multiple of the %s block of %d", l.K, l.Type, l.Type.Block())
	}
	return nil
}

// Panels returns the number of panels.
func (l Layout) Panels() int { return (l.N + PanelWidth - 1) / PanelWidth }

// panelBytes returns the length of a panel up to k, without padding.
func (l Layout) panelBytes(k int) int { return PanelOffset(l.Type, k+k%l.Type.KStep()) }

// PanelOffset returns the byte offset of element k of a panel; k is a multiple of KStep.
func PanelOffset(t WeightType, k int) int { return t.PanelOffset(k) }

// PanelStride returns the distance in bytes between panels: a multiple of 64 that is not close to a
// multiple of 4096. Kernels read several panels at the same time, and addresses with equal low bits
// would share one set of the first-level cache. Where this makes a panel longer than tooLong
// allows, the stride is a multiple of 32, farther from a multiple of 4096 only if the length allows
// it.
func (l Layout) PanelStride() int {
	const page, near, shift = 4096, 320, 576
	n := (l.panelBytes(l.K) + 63) &^ 63
	if r := n % page; r < near || r > page-near {
		n += shift
	}
	if l.tooLong(n) {
		n = (l.panelBytes(l.K) + 31) &^ 31
		if r := n % page; r < near && !l.tooLong(n+near-r) {
			n += near - r
		}
	}
	return n
}

// tooLong reports whether a panel of n bytes is longer than one and a half times its rows in the
// file, the most memory that a packed matrix may take.
func (l Layout) tooLong(n int) bool {
	return l.Type.Quantized() && 2*n > 3*PanelWidth*l.Type.RowBytes(l.K)
}

// Bytes returns the size of the packed matrix.
func (l Layout) Bytes() int { return l.Panels() * l.PanelStride() }
