// Package asm encodes AArch64 instructions: the vector and matrix instructions that the generated
// kernels consist of, and the few scalar ones that control their loops. Every instruction is one
// line of a table with its syntax and its fixed bits, as the Arm Architecture Reference Manual (DDI
// 0487) prints them. The package builds on every architecture and never runs what it encodes. It
// imports nothing of the module except internal/code.
package asm

import (
	"encoding/binary"
	"math"

	"sandwich/microkernel/internal/code"
)

// Label is a place in the code that branches may name before or after it is bound.
type Label = code.Label

// Asm collects the code of one function. The zero value is not ready; use New.
type Asm struct {
	code.Function
	level    Level
	counters []X // of the loops around what is emitted now
}

// New starts an empty function that may use the given extensions.
func New(level Level) *Asm  { return &Asm{Function: code.New("arm64/asm"), level: level} }
func (a *Asm) put(w uint32) { a.Bytes = binary.LittleEndian.AppendUint32(a.Bytes, w) }

// I appends an instruction. The operands are those of its syntax, from left to right.
func (a *Asm) I(o *Op, args ...Operand) {
	if o.level&^a.level != 0 {
		a.Fail("%s is beyond the instruction set of this function", o.syntax)
		return
	}
	fields := o.parse().fields
	if len(args) != len(fields) {
		a.Fail("%s takes %d operands, not %d", o.syntax, len(fields), len(args))
		return
	}
	w := o.word
	for i, f := range fields {
		c, v := args[i].operand()
		bits, ok := f.encode(v)
		if c != f.class || !ok {
			a.Fail("%s: operand %d cannot be %v", o.syntax, i+1, args[i])
			return
		}
		if f.written {
			a.writes(X(v))
		}
		w |= bits
	}
	if a.Traced() {
		a.Note(o.text(args))
	}
	if a.Counting() {
		a.count(o)
	}
	a.put(w)
}

// Align pads with no-operations to a multiple of n bytes, for the heads of hot loops.
func (a *Asm) Align(n int) {
	for len(a.Bytes)%n != 0 {
		a.put(0xD503201F)
	}
}

// ConstQ loads sixteen constant bytes into a vector register.
func (a *Asm) ConstQ(v V, data [16]byte) {
	a.Load(a.Constant(data[:]), literal.fixup(len(a.Bytes)))
	a.put(0x9C000000 | a.register(uint8(v)))
}

// Splat puts a 32-bit word into every lane of a vector register.
func (a *Asm) Splat(v V, word uint32) {
	if word&0xFFFFFF == 0 {
		a.I(MOVI24, v, Imm(word>>24))
		return
	}
	var b [16]byte
	for i := range 4 {
		binary.LittleEndian.PutUint32(b[4*i:], word)
	}
	a.ConstQ(v, b)
}

// SplatF puts a float32 into every lane of a vector register.
func (a *Asm) SplatF(v V, f float32) { a.Splat(v, math.Float32bits(f)) }

// Finish resolves labels and constants and returns the machine code.
func (a *Asm) Finish() ([]byte, error) { return a.Function.Finish(a.patch, 0, 0, 0, 0) } // UDF #0

// patch puts the distance to an offset of the code into an instruction.
func (a *Asm) patch(f code.Fixup, to int) {
	d := (to - f.At) / 4
	if limit := 1 << (f.Bits - 1); d < -limit || d >= limit {
		a.Fail("a branch or load of %d bytes does not reach", 4*d)
		return
	}
	w := binary.LittleEndian.Uint32(a.Bytes[f.At:])
	w |= uint32(d) & (1<<f.Bits - 1) << f.Shift
	binary.LittleEndian.PutUint32(a.Bytes[f.At:], w)
}
