package asm

// Level is the architecture extension a program may use. An instruction beyond it is an error at
// Finish, so that a kernel built for an older CPU can never reach an undefined instruction there.
type Level uint8

// The levels, each a bit. Base is Armv8.0-A with Advanced SIMD, which every arm64 that Go runs on
// has.
const (
	Base    Level = 0
	DotProd Level = 1 << iota // SDOT
	I8MM                      // SMMLA, USDOT
	BF16                      // BFDOT, BFMMLA
	SME                       // streaming mode and the ZA array, with the SVE instructions legal there
)

// V is a vector register, 0 to 31, at whatever width and arrangement the instruction gives it.
type V uint8

// X is a general purpose register, 0 to 30; 31 is the zero register or the stack pointer, as the
// instruction has it.
type X uint8

// Imm is a number in an instruction: a shift, an offset in bytes, the index of a lane.
type Imm int

// ZR is the zero register where an instruction takes one, SP the stack pointer where it takes that.
const (
	ZR X = 31
	SP X = 31
)

// Operand is anything an instruction may name: V, X, Imm or P.
type Operand interface{ operand() (class, int) }

func (v V) operand() (class, int)   { return vector, int(v) }
func (x X) operand() (class, int)   { return general, int(x) }
func (i Imm) operand() (class, int) { return number, int(i) }

// P is a predicate register of SVE, 0 to 15.
type P uint8

func (p P) operand() (class, int) { return predicate, int(p) }

// class is what kind of operand a field takes.
type class uint8

const (
	vector class = iota
	general
	number
	predicate
)
