package asm

import (
	"encoding/binary"
	"math"

	"sandwich/microkernel/internal/code"
)

// Level is the vector extension a program may use. An instruction beyond it is an error at Finish,
// so that a kernel built for an older CPU can never reach an illegal instruction there.
type Level uint8

// The levels. What AVX512 adds beyond F, BW, DQ and VL (VNNI, BF16, VBMI) the caller gates by
// CPUID.
const (
	AVX2   Level = iota // VEX only: AVX2, FMA3, F16C
	AVX512              // VEX and EVEX
)

// Label is a place in the code that jumps may name before or after it is bound.
type Label = code.Label

// Asm collects the code of one function. The zero value is not ready; use New.
type Asm struct {
	code.Function
	level    Level
	tileRows [8]uint8 // of the last SetTiles
}

// New starts an empty function for the given level.
func New(level Level) *Asm { return &Asm{Function: code.New("amd64/asm"), level: level} }

// Level returns the level the function is assembled for.
func (a *Asm) Level() Level  { return a.level }
func (a *Asm) put(b ...byte) { a.Bytes = append(a.Bytes, b...) }
func (a *Asm) put32(v int32) { a.Bytes = binary.LittleEndian.AppendUint32(a.Bytes, uint32(v)) }

func (a *Asm) note(name string, ops ...Operand) {
	if !a.Traced() {
		return
	}
	s := name
	for i, o := range ops {
		sep := ", "
		if i == 0 {
			sep = " "
		}
		s += sep + textOf(o)
	}
	a.Note(s)
}

// Const returns a memory operand for constant bytes in the function's own pool, which follows the
// code. Equal constants of equal length are stored once. Lengths are 4, 8, 16, 32 or 64; each
// constant is aligned to its length.
func (a *Asm) Const(data []byte) Mem {
	n := len(data)
	if n == 0 || n > 64 || n&(n-1) != 0 {
		a.Fail("constant of %d bytes", n)
		return Mem{}
	}
	return Mem{base: noReg, index: noReg, scale: 1, pool: int32(a.Constant(data)) + 1}
}

// ConstU32 returns a pool constant of one 32-bit word, to be loaded by a broadcast.
func (a *Asm) ConstU32(v uint32) Mem { return a.Const(binary.LittleEndian.AppendUint32(nil, v)) }

// ConstF32 returns a pool constant of one float32, to be loaded by a broadcast.
func (a *Asm) ConstF32(v float32) Mem { return a.ConstU32(math.Float32bits(v)) }

// ConstU32s returns a pool constant of several 32-bit words.
func (a *Asm) ConstU32s(v ...uint32) Mem {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return a.Const(b)
}

// Finish resolves labels and constants and returns the machine code.
func (a *Asm) Finish() ([]byte, error) { return a.Function.Finish(a.patch, 0xCC) } // int3

// patch adds the distance from the end of an instruction to an offset of the code into its 32-bit
// field, which holds what the operand adds to it.
func (a *Asm) patch(f code.Fixup, to int) {
	field := a.Bytes[f.At:]
	binary.LittleEndian.PutUint32(field, binary.LittleEndian.Uint32(field)+uint32(int32(to-f.End)))
}
