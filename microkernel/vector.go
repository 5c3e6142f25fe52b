package microkernel

import "sandwich/microkernel/internal/vec"

// What a transformer does beside its matrix products, and how the KV cache lies in memory:
// documented where they are declared.
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

// The gated units.
const (
	SwiGLU        = vec.SwiGLU
	GeGLU         = vec.GeGLU
	ClampedSwiGLU = vec.ClampedSwiGLU
	SigmoidGLU    = vec.SigmoidGLU
)

// What the sums of a convolution become.
const (
	ConvSiLU = vec.ConvSiLU
	ConvGate = vec.ConvGate
)

// DeltaGates makes decays and rates of the delta rule, in place.
func DeltaGates(alpha, beta, a, dt []float32) { vec.DeltaGates(alpha, beta, a, dt) }

// StatePanel is how many columns of values a panel of a delta rule's state has.
const StatePanel = vec.StatePanel

// The element types of a KV cache, and the positions of one of its blocks.
const (
	KVF16   = vec.KVF16
	KVF32   = vec.KVF32
	KVQ8    = vec.KVQ8
	KVBlock = vec.KVBlock
)

// What attention adds up by.
const (
	AttendF32     = vec.AttendF32
	AttendDPBF16  = vec.AttendDPBF16
	AttendTDPBF16 = vec.AttendTDPBF16
	AttendDPBUSD  = vec.AttendDPBUSD
)

// AttentionDots lists what attention may add up by.
func AttentionDots() []AttentionDot { return vec.AttentionDots() }

// ParseAttentionDot is the inverse of AttentionDot's String.
func ParseAttentionDot(s string) (AttentionDot, error) { return vec.ParseAttentionDot(s) }

// NewVec returns the vector kernels of an instruction set; each set is generated once per process.
// Where no code can be generated they are the plain-Go ones. The error says that this host cannot
// run the instruction set.
func NewVec(isa ISA) (*Vec, error) { return vec.New(isa) }

// RefVec returns the plain-Go kernels: the oracle of all others.
func RefVec() *Vec { return vec.Ref() }

// NewAttention returns the fused attention of an instruction set, a layout and a form, generated
// once per process, in plain Go where NewVec is.
func NewAttention(isa ISA, l KVLayout, form AttentionForm) (*Attention, error) {
	return vec.NewAttention(isa, l, form)
}

// ParseKVType is the inverse of KVType's String. The error lists the types.
func ParseKVType(s string) (KVType, error) { return vec.ParseKVType(s) }
