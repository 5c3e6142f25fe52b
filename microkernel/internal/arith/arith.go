// Package arith defines the constants of the arithmetic of row operations and attention. The
// plain-Go definitions and the code generators of every instruction set use the same constants in
// the same order of operations, so that results are bit-equal (DESIGN.md, rule 6).
//
// The package imports nothing.
package arith

// Lanes is the number of virtual lanes of a reduction over a row: element i belongs to lane i mod
// 16 at every vector width, and the lanes are added by one fixed tree.
const Lanes = 16

// BlockPositions is the number of positions in a block of the KV cache, and the length of an
// attention block: block b of a sequence holds the positions 64b to 64b+63.
const BlockPositions = 64

// ScaleDims is the number of dimensions of a position that share a scale in an int8 KV block.
const ScaleDims = 32

// The exponential: exp(x) = 2^n exp(r), n = round(x log2 e), |r| <= ln2/2, and
// exp(r) = 1 + r + r^2 q(r) with q of degree 4 through the Chebyshev nodes of that range (relative
// error of the polynomial 1.1e-8).
const (
	ExpLo    = -104 // below this argument the result rounds to zero: 2^-150 and less
	ExpHi    = 89   // above this argument the result exceeds the largest float32
	Log2E    = 0x1.715476p+0
	Ln2Hi    = 0x1.62e4p-1 // 16 bits, so that n*Ln2Hi is exact
	Ln2Lo    = 0x1.7f7d1cp-20
	ExpC2    = 0x1p-1
	ExpC3    = 0x1.5554dcp-3
	ExpC4    = 0x1.55551ap-5
	ExpC5    = 0x1.120ba2p-7
	ExpC6    = 0x1.6d113cp-10
	ExpMagic = 0x1.8p23 // adding it rounds a small float32 to an integer, ties to even
)

// Gated linear units: -2 sqrt(2/pi), and that times 0.044715, of the tanh approximation of GELU
// (Hendrycks, Gimpel: Gaussian Error Linear Units, 2016); slope, limit and linear offset of the
// clamped unit of gpt-oss.
const (
	GELUC1    = -0x1.988454p+0
	GELUC3    = -0x1.2444f2p-4
	GLUSlope  = -0x1.b3b646p+0
	GLULimit  = 7
	GLULinear = 1
)

// LowestScore is the value from which the maximum of a row's scores starts. It keeps a block of
// which a row sees at least one position distinct from a block it does not see, whose maximum is
// -Inf. If all scores are NaN, the sum of the block becomes NaN; if all are lower, it becomes zero.
// The value is far below any score of a model, and above -Inf after any scale.
const LowestScore = -0x1p100

// Quantization of activations to int8: a block whose largest magnitude is below TinyQ8 has scale 0,
// because 127 divided by it would overflow.
const TinyQ8 = 0x1p-120

// Bit patterns of float32.
const (
	TinyQ8Bits    = 0x03800000 // TinyQ8
	InfBits       = 0x7f800000
	NegInfBits    = 0xff800000
	NaNBits       = 0x7fc00000
	NormalBits    = 0x00800000 // the smallest normal number
	SignBit       = 0x80000000
	QuietBit      = 0x00400000
	OneExponent   = 127 << 23 // the exponent field of 1.0
	BF16HalfUlp   = 0x7fff    // half a unit in the last place of bfloat16, minus one
	BF16UpperHalf = 0xFFFF0000
)

// Attention by integer dot products quantizes probabilities times value scales to 0..255: the
// largest of a block is at least LeastWeight.
const (
	LeastWeight     = 0x1p-100
	ProbabilityTop  = float32(probabilityTop)
	ProbabilityStep = float32(1.0 / probabilityTop)
	probabilityTop  = 255
)

// Attention by bfloat16 dot products replaces elements of queries and probabilities below these
// magnitudes by zeros, so that no product or sum becomes subnormal.
const (
	LeastQuery       = 0x1p-80
	LeastProbability = 0x1p-64
)
