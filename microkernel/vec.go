package microkernel

import "sandwich/microkernel/internal/vec"

// What a transformer does beside its matrix products, and how the KV cache lies in memory:
// documented where they are declared.
type (
	Vec = vec.Vec
	GLU = vec.GLU

	KVType   = vec.KVType
	KVLayout = vec.KVLayout

	Attention      = vec.Attention
	AttentionForm  = vec.AttentionForm
	AttentionJob   = vec.AttentionJob
	AttentionParts = vec.AttentionParts
)

// The gated units.
const (
	SwiGLU        = vec.SwiGLU
	GeGLU         = vec.GeGLU
	ClampedSwiGLU = vec.ClampedSwiGLU
)

// The element types of a KV cache, and the positions of one of its blocks.
const (
	KVF16   = vec.KVF16
	KVF32   = vec.KVF32
	KVQ8    = vec.KVQ8
	KVBlock = vec.KVBlock
)

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
