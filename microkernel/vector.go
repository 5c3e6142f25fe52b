package microkernel

import "sandwich/microkernel/internal/vec"

// The types of row operations, attention and the KV cache are declared in package vec.
type (
	Vec = vec.Vec
	GLU = vec.GLU

	Conv  = vec.Conv
	Delta = vec.Delta

	KVType   = vec.KVType
	KVLayout = vec.KVLayout

	Attention       = vec.Attention
	AttentionForm   = vec.AttentionForm
	AttentionDot    = vec.AttentionDot
	AttentionJob    = vec.AttentionJob
	AttentionStates = vec.AttentionStates
)

// The gated linear units.
const (
	SwiGLU        = vec.SwiGLU
	GeGLU         = vec.GeGLU
	ClampedSwiGLU = vec.ClampedSwiGLU
	SigmoidGLU    = vec.SigmoidGLU
)

// The activations of a convolution.
const (
	ConvSiLU = vec.ConvSiLU
	ConvGate = vec.ConvGate
)

// DeltaGates computes decays and rates of the delta rule, in place.
func DeltaGates(alpha, beta, a, dt []float32) { vec.DeltaGates(alpha, beta, a, dt) }

// StatePanel is the number of value columns in a panel of a delta rule's state.
const StatePanel = vec.StatePanel

// The element types of a KV cache, and the number of positions in one of its blocks.
const (
	KVF16   = vec.KVF16
	KVF32   = vec.KVF32
	KVQ8    = vec.KVQ8
	KVBlock = vec.KVBlock
)

// The dot products of attention.
const (
	AttendF32     = vec.AttendF32
	AttendDPBF16  = vec.AttendDPBF16
	AttendTDPBF16 = vec.AttendTDPBF16
	AttendDPBUSD  = vec.AttendDPBUSD
)

// AttentionDots lists the dot products of attention.
func AttentionDots() []AttentionDot { return vec.AttentionDots() }

// ParseAttentionDot is the inverse of AttentionDot's String.
func ParseAttentionDot(s string) (AttentionDot, error) { return vec.ParseAttentionDot(s) }

// NewVec returns the row operations of an instruction set, generated once per process. They are
// plain Go if no code can be generated. The error reports that this host cannot run the
// instruction set.
func NewVec(isa ISA) (*Vec, error) { return vec.New(isa) }

// RefVec returns the plain-Go row operations, the oracle of all others.
func RefVec() *Vec { return vec.Ref() }

// NewAttention returns the fused attention of an instruction set, a layout and a form, generated
// once per process, or in plain Go under the conditions of NewVec.
func NewAttention(isa ISA, l KVLayout, form AttentionForm) (*Attention, error) {
	return vec.NewAttention(isa, l, form)
}

// ParseKVType is the inverse of KVType's String. The error lists the types.
func ParseKVType(s string) (KVType, error) { return vec.ParseKVType(s) }
