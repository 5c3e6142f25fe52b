package asm

import "sandwich/microkernel/internal/code"

// Cond is the condition of a jump.
type Cond uint8

// The conditions, as the instruction encodes them.
const (
	Below        Cond = 0x2 // unsigned <
	AboveOrEqual Cond = 0x3 // unsigned >=
	Zero         Cond = 0x4 // == 0, equal
	NotZero      Cond = 0x5
	BelowOrEqual Cond = 0x6 // unsigned <=
	Above        Cond = 0x7 // unsigned >
	Negative     Cond = 0x8
	Less         Cond = 0xC // signed <
	GreaterEqual Cond = 0xD // signed >=
	LessOrEqual  Cond = 0xE // signed <=
	Greater      Cond = 0xF // signed >
)

// Jcc jumps to the label when the condition holds. Backward jumps take the short form where it
// reaches.
func (a *Asm) Jcc(c Cond, l Label) {
	if to, ok := a.Bound(l); ok {
		if d := to - (len(a.Bytes) + 2); d >= -128 {
			a.put(0x70|byte(c), byte(d))
			return
		}
	}
	a.put(0x0F, 0x80|byte(c))
	a.jump32(l)
}

// Jmp jumps to the label.
func (a *Asm) Jmp(l Label) {
	if to, ok := a.Bound(l); ok {
		if d := to - (len(a.Bytes) + 2); d >= -128 {
			a.put(0xEB, byte(d))
			return
		}
	}
	a.put(0xE9)
	a.jump32(l)
}

func (a *Asm) jump32(l Label) {
	at := len(a.Bytes)
	a.put32(0)
	a.Jump(l, code.Fixup{At: at, End: len(a.Bytes)})
}

// nops[n] is the recommended no-operation of n bytes.
var nops = [...][]byte{
	1: {0x90},
	2: {0x66, 0x90},
	3: {0x0F, 0x1F, 0x00},
	4: {0x0F, 0x1F, 0x40, 0x00},
	5: {0x0F, 0x1F, 0x44, 0x00, 0x00},
	6: {0x66, 0x0F, 0x1F, 0x44, 0x00, 0x00},
	7: {0x0F, 0x1F, 0x80, 0x00, 0x00, 0x00, 0x00},
	8: {0x0F, 0x1F, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
}

// Align pads with no-operations to a multiple of n bytes, for the heads of hot loops.
func (a *Asm) Align(n int) {
	for pad := (n - len(a.Bytes)%n) % n; pad > 0; {
		k := min(pad, 8)
		a.put(nops[k]...)
		pad -= k
	}
}
