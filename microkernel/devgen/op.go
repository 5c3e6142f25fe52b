package devgen

// Op is an operation.
type Op uint8

// The operations. Integer operations wrap. Shifts use the low five bits of the count.
const (
	OpBuiltin Op = iota // the built-in value Index
	OpPush              // push word Index

	OpAdd // u32
	OpSub
	OpMul
	OpDiv // unsigned; the divisor is not zero
	OpRem
	OpAnd
	OpOr
	OpXor
	OpShl
	OpShr
	OpSar  // arithmetic shift
	OpDot4 // Args[2] plus the sum of the products of four signed bytes

	OpFAdd // f32
	OpFSub
	OpFMul
	OpFMA  // Args[0]*Args[1] + Args[2], rounded once
	OpFDiv // correctly rounded
	OpFSqrt

	OpFromInt  // f32 of a signed word
	OpFromHalf // f32 of the float16 in the low bits; the bits above it are zeros
	OpBits     // u32 with the bits of an f32
	OpFloat    // f32 with the bits of a u32

	OpEqual // bool
	OpLess  // unsigned
	OpLessSigned
	OpFLess // false if an operand is NaN
	OpAndBool
	OpOrBool
	OpNot
	OpSelect // Args[0] ? Args[1] : Args[2]

	OpLoad // word Args[0] of binding Index
	OpStore
	OpLoad4 // words Args[0] to Args[0]+3 of binding Index, of which the first is a multiple of four
	OpStore4
	OpLoadShared // word Args[0] of shared array Index
	OpStoreShared
	OpLoadVar
	OpStoreVar

	OpIf      // Body if Args[0]
	OpFor     // Body for Dst[0] = Args[0]; below Args[1]; by Args[2], unsigned
	OpBarrier // all invocations of the workgroup; orders shared memory

	// OpMMA multiplies signed bytes by the 32 invocations of an aligned group: D = A*B + C with A
	// of 16 rows, B of 8 columns and 16 or 32 k, in the fragments of mma.m16n8k16 and m16n8k32.
	// With g = lane/4 and t = lane%4, words 0 and 1 of A have k 4t..4t+3 of rows g and g+8, words 2
	// and 3 the same of k 16 more; word i of B has k 16i+4t..+3 of column g; words 0 to 3 of C and
	// D are (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1).
	OpMMA
	// OpCopyAsync begins to copy four words from word Args[1] of binding Index to word Args[0] of
	// shared array Array; both are multiples of four.
	OpCopyAsync
	OpCommitAsync // the copies begun since the last commit form a group
	OpWaitAsync   // until at most Index groups of the invocation are pending

	ops
)

// Built-in values.
const (
	LocalIndex int32 = iota // index of the invocation in the workgroup
	GroupX                  // index of the workgroup in the grid
	GroupY
	GroupZ
)

// opInfo describes an operation: its name, the types of its operands and of its result. A nil args
// is checked separately.
type opInfo struct {
	name   string
	args   []Type
	result Type
	void   bool
}

var (
	u1, u2, u3 = []Type{U32}, []Type{U32, U32}, []Type{U32, U32, U32}
	f1, f2, f3 = []Type{F32}, []Type{F32, F32}, []Type{F32, F32, F32}
	b1, b2     = []Type{Bool}, []Type{Bool, Bool}
)

var infos = [ops]opInfo{
	OpBuiltin: {name: "builtin", args: []Type{}, result: U32},
	OpPush:    {name: "push", args: []Type{}},

	OpAdd: {name: "add", args: u2, result: U32}, OpSub: {name: "sub", args: u2, result: U32},
	OpMul: {name: "mul", args: u2, result: U32}, OpDiv: {name: "div", args: u2, result: U32},
	OpRem: {name: "rem", args: u2, result: U32}, OpAnd: {name: "and", args: u2, result: U32},
	OpOr: {name: "or", args: u2, result: U32}, OpXor: {name: "xor", args: u2, result: U32},
	OpShl: {name: "shl", args: u2, result: U32}, OpShr: {name: "shr", args: u2, result: U32},
	OpSar: {name: "sar", args: u2, result: U32}, OpDot4: {name: "dot4", args: u3, result: U32},

	OpFAdd: {name: "fadd", args: f2, result: F32}, OpFSub: {name: "fsub", args: f2, result: F32},
	OpFMul: {name: "fmul", args: f2, result: F32}, OpFMA: {name: "fma", args: f3, result: F32},
	OpFDiv: {name: "fdiv", args: f2, result: F32}, OpFSqrt: {name: "fsqrt", args: f1, result: F32},

	OpFromInt: {name: "fromint", args: u1, result: F32}, OpFromHalf: {name: "fromhalf", args: u1, result: F32},
	OpBits:  {name: "bits", args: f1, result: U32},
	OpFloat: {name: "float", args: u1, result: F32},

	OpEqual: {name: "equal", args: u2, result: Bool}, OpLess: {name: "less", args: u2, result: Bool},
	OpLessSigned: {name: "lesssigned", args: u2, result: Bool}, OpFLess: {name: "fless", args: f2, result: Bool},
	OpAndBool: {name: "andbool", args: b2, result: Bool}, OpOrBool: {name: "orbool", args: b2, result: Bool},
	OpNot: {name: "not", args: b1, result: Bool}, OpSelect: {name: "select"},

	OpLoad: {name: "load", args: u1}, OpStore: {name: "store", void: true},
	OpLoad4: {name: "load4"}, OpStore4: {name: "store4", void: true},
	OpLoadShared: {name: "loadshared", args: u1}, OpStoreShared: {name: "storeshared", void: true},
	OpLoadVar: {name: "loadvar", args: []Type{}}, OpStoreVar: {name: "storevar", void: true},

	OpIf: {name: "if", args: b1, void: true}, OpFor: {name: "for", args: u3, result: U32},
	OpBarrier: {name: "barrier", args: []Type{}, void: true},
	OpMMA:     {name: "mma"}, OpCopyAsync: {name: "copyasync", args: u2, void: true},
	OpCommitAsync: {name: "commitasync", args: []Type{}, void: true},
	OpWaitAsync:   {name: "waitasync", args: []Type{}, void: true},
}

// String returns the name of the operation.
func (o Op) String() string { return infos[o].name }
