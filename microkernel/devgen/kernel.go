package devgen

// Type is the type of a value.
type Type uint8

// The types of values.
const (
	U32 Type = iota // a 32-bit word; signed operations read it as two's complement
	F32
	Bool
)

// String returns the name of the type.
func (t Type) String() string { return [...]string{"u32", "f32", "bool"}[t] }

// Value identifies a value of a kernel. The zero value identifies no value.
type Value int32

// Def describes a value: its type and, if it is a constant, its bits.
type Def struct {
	Type  Type
	Const bool
	Bits  uint32
}

// Var identifies a mutable variable of an invocation.
type Var int32

// Array identifies a shared array of a kernel.
type Array int32

// Buffer identifies a binding of a kernel.
type Buffer int32

// Access describes how a kernel uses a binding.
type Access uint8

// The kinds of access.
const (
	Read Access = iota
	Write
	ReadWrite
)

// Binding describes a buffer that a dispatch passes to a kernel: an address that is a multiple of
// 16 bytes.
type Binding struct {
	Name   string
	Access Access
}

// SharedArray is an array of words that the invocations of a workgroup share.
type SharedArray struct {
	Name  string
	Words int
}

// Instr is an instruction. The meaning of Index depends on the operation: the binding, the shared
// array, the variable, the built-in value or the number of pending groups.
type Instr struct {
	Op    Op
	Dst   []Value
	Args  []Value
	Index int32
	Array Array   // of CopyAsync
	Body  []Instr // of If and For
}

// Kernel is a kernel in the IR. It is immutable after Build, and safe for concurrent use.
//
// The arguments of a dispatch are the addresses of the bindings, 8 bytes each, followed by the push
// words, 4 bytes each: the block of push constants in Vulkan, the parameters in CUDA.
type Kernel struct {
	Name     string
	Size     int // invocations of a workgroup, in one dimension
	Bindings []Binding
	Push     []string // names of the push words
	Shared   []SharedArray
	Vars     []Type
	Values   []Def // by Value
	Body     []Instr
	Static   bool // push words were replaced by constants, see [Bind]
	// FewGroups lets a compiler use many registers, so that each invocation has many loads in
	// flight, although fewer workgroups then run on a processor at a time.
	FewGroups bool
}

// MaxArgumentBytes is the largest size of the arguments of a kernel: every Vulkan device accepts
// so many bytes of push constants.
const MaxArgumentBytes = 128

// argumentBytes returns the size of the arguments of a dispatch.
func (k *Kernel) argumentBytes() int { return 8*len(k.Bindings) + 4*len(k.Push) }

// SharedBytes returns the size of the memory that a workgroup shares.
func (k *Kernel) SharedBytes() (n int) {
	for _, a := range k.Shared {
		n += 4 * a.Words
	}
	return n
}

// NeedsMatrixUnit reports whether the kernel multiplies by MMA or copies asynchronously, which
// SPIR-V of this package cannot express.
func (k *Kernel) NeedsMatrixUnit() bool {
	found := false
	walk(k.Body, func(in *Instr) { found = found || in.Op == OpMMA || in.Op == OpCopyAsync })
	return found
}

// walk calls f for each instruction, nested ones included, in order.
func walk(body []Instr, f func(in *Instr)) {
	for i := range body {
		f(&body[i])
		walk(body[i].Body, f)
	}
}
