package asm

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Level is the vector extension a program may use. An instruction beyond it is an error at Finish, so that a kernel built
// for an older CPU can never reach an illegal instruction there.
type Level uint8

// The levels. What AVX512 adds beyond F, BW, DQ and VL (VNNI, BF16, VBMI) the caller gates by CPUID.
const (
	AVX2   Level = iota // VEX only: AVX2, FMA3, F16C
	AVX512              // VEX and EVEX
)

// Label is a place in the code that jumps may name before or after it is bound.
type Label int

type fixup struct {
	at, end int // offset of the 32-bit field, and of the byte after its instruction
	target  int // label, or offset in the pool
}

// Asm collects the code of one function. The zero value is not ready; use New.
type Asm struct {
	level  Level
	buf    []byte
	labels []int // offset of each label, -1 while unbound
	jumps  []fixup
	pool   []byte
	consts []fixup
	err    error
	trace  func(start int, text string)
}

// New starts an empty function for the given level.
func New(level Level) *Asm { return &Asm{level: level} }

// Trace makes the assembler report each instruction as its offset and text, for listings and for tests against a disassembler.
func (a *Asm) Trace(f func(start int, text string)) { a.trace = f }

// Pos is the number of bytes of code so far.
func (a *Asm) Pos() int { return len(a.buf) }

// Level is the level the function is assembled for.
func (a *Asm) Level() Level { return a.level }

func (a *Asm) fail(format string, args ...any) {
	if a.err == nil {
		a.err = fmt.Errorf("asm: offset %d: "+format, append([]any{len(a.buf)}, args...)...)
	}
}

func (a *Asm) put(b ...byte) { a.buf = append(a.buf, b...) }

func (a *Asm) put32(v int32) { a.buf = binary.LittleEndian.AppendUint32(a.buf, uint32(v)) }

func (a *Asm) note(start int, name string, ops ...Operand) {
	if a.trace == nil {
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
	a.trace(start, s)
}

// NewLabel makes an unbound label.
func (a *Asm) NewLabel() Label {
	a.labels = append(a.labels, -1)
	return Label(len(a.labels) - 1)
}

// Bind places the label at the present end of the code.
func (a *Asm) Bind(l Label) {
	if a.labels[l] >= 0 {
		a.fail("label %d bound twice", l)
	}
	a.labels[l] = len(a.buf)
}

// Here makes a label bound at the present end of the code.
func (a *Asm) Here() Label {
	l := a.NewLabel()
	a.Bind(l)
	return l
}

// Const returns a memory operand for constant bytes in the function's own pool, which follows the code. Equal constants of
// equal length are stored once. Lengths are 4, 8, 16, 32 or 64; each constant is aligned to its length.
func (a *Asm) Const(data []byte) Mem {
	n := len(data)
	if n == 0 || n > 64 || n&(n-1) != 0 {
		a.fail("constant of %d bytes", n)
		return Mem{}
	}
	for off := 0; off+n <= len(a.pool); off += n {
		if string(a.pool[off:off+n]) == string(data) {
			return Mem{base: noReg, index: noReg, scale: 1, pool: int32(off) + 1}
		}
	}
	for len(a.pool)%n != 0 {
		a.pool = append(a.pool, 0)
	}
	off := len(a.pool)
	a.pool = append(a.pool, data...)
	return Mem{base: noReg, index: noReg, scale: 1, pool: int32(off) + 1}
}

// ConstU32 is a pool constant of one 32-bit word, to be loaded by a broadcast.
func (a *Asm) ConstU32(v uint32) Mem { return a.Const(binary.LittleEndian.AppendUint32(nil, v)) }

// ConstF32 is a pool constant of one float32, to be loaded by a broadcast.
func (a *Asm) ConstF32(v float32) Mem { return a.ConstU32(math.Float32bits(v)) }

// ConstU32s is a pool constant of several 32-bit words.
func (a *Asm) ConstU32s(v ...uint32) Mem {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return a.Const(b)
}

// Finish resolves labels and constants and returns the machine code. The code is position independent and wants an address
// that is a multiple of 64. The error names the first instruction that could not be encoded.
func (a *Asm) Finish() ([]byte, error) {
	if a.err != nil {
		return nil, a.err
	}
	for _, f := range a.jumps {
		to := a.labels[f.target]
		if to < 0 {
			return nil, fmt.Errorf("asm: label %d is never bound", f.target)
		}
		binary.LittleEndian.PutUint32(a.buf[f.at:], uint32(int32(to-f.end)))
	}
	code := a.buf
	if len(a.pool) > 0 {
		for len(code)%64 != 0 {
			code = append(code, 0xCC)
		}
		base := len(code)
		code = append(code, a.pool...)
		for _, f := range a.consts {
			d := int32(binary.LittleEndian.Uint32(code[f.at:])) + int32(base+f.target-f.end)
			binary.LittleEndian.PutUint32(code[f.at:], uint32(d))
		}
	}
	return code, nil
}
