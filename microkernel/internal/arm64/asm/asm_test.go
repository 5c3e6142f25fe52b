package asm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sandwich/microkernel/internal/asmtest"
)

const every = DotProd | I8MM | BF16 | SME

// draw is random operands for the op. Registers differ: a load must not write its own address, nor
// a pair one register twice.
func draw(r *rand.Rand, o *Op) []Operand {
	var out []Operand
	regs := r.Perm(31)
	fields := o.parse().fields
	for i, f := range fields {
		switch f.class {
		case vector:
			out = append(out, V(regs[i]+r.IntN(2)*(i+1)/len(fields)))
		case general:
			out = append(out, X(regs[i]))
		case number:
			out = append(out, Imm(f.values[r.IntN(len(f.values))]))
		case predicate:
			out = append(out, P(r.IntN(8)))
		}
	}
	return out
}

// encodings is the text and the bytes of n draws of every instruction.
func encodings(t *testing.T, seed uint64, n int) (lines []string, codes [][]byte) {
	r := rand.New(rand.NewPCG(seed, 4))
	for _, o := range all {
		for range n {
			a := New(every)
			a.Trace(func(s string) { lines = append(lines, s) })
			ops := draw(r, o)
			a.I(o, ops...)
			code, err := a.Finish()
			if err != nil {
				t.Fatalf("%s %v: %v", o.syntax, ops, err)
			}
			codes = append(codes, code)
		}
	}
	return lines, codes
}

// TestGolden pins the bytes of three draws of every instruction. The file was compared with llvm-mc
// when it was written.
func TestGolden(t *testing.T) {
	lines, codes := encodings(t, 3, 3)
	var got strings.Builder
	for i, l := range lines {
		fmt.Fprintf(&got, "%x  %s\n", codes[i], l)
	}
	asmtest.Golden(t, "testdata/golden.txt", got.String())
}

// TestAgainstLLVM compares the bytes of random operands of every instruction with those of llvm-mc.
func TestAgainstLLVM(t *testing.T) {
	llvm := asmtest.FindLLVM(t, "", "-triple=aarch64", "-mattr=+v8.6a,+dotprod,+i8mm,+bf16,+sve,+sme")
	lines, want := encodings(t, 1, 40)
	llvm.Compare(t, lines, want)
}

// TestFlow compares branches, constants and long additions, which the table does not contain, with
// their bytes.
func TestFlow(t *testing.T) {
	a := New(Base)
	out := a.NewLabel()
	a.CBZ(1, out)                  // b4000161
	top := a.Here()                //
	a.Splat(0, 0x3F800001)         // 9c0001e0: 60 bytes on, at 64
	a.Splat(1, 0x3F800001)         // 9c0001c1
	a.Splat(2, 0x42000000)         // 4f026442
	a.AddImm(2, 2, 0x12345)        // 91404842 910d1442
	a.AddImm(3, 2, -16)            // d1004043
	a.I(SUBSI, X(1), X(1), Imm(1)) // f1000421
	a.BC(NotEqual, top)            // 54ffff21
	a.TBZ(4, 3, out)               // 36180044
	a.B(top)                       // 17fffff7
	a.Bind(out)                    //
	a.MovImm(5, -3)                // 92800045
	a.MovImm(6, 0x500000000007)    // d28000e6 f2ca0006
	a.Ret()                        // d65f03c0
	code, err := a.Finish()
	if err != nil {
		t.Fatal(err)
	}
	want := []uint32{
		0xb4000161, 0x9c0001e0, 0x9c0001c1, 0x4f026442, 0x91404842, 0x910d1442, 0xd1004043, 0xf1000421, 0x54ffff21,
		0x36180044, 0x17fffff7,
		0x92800045, 0xd28000e6, 0xf2ca0006, 0xd65f03c0,
	}
	for i, w := range want {
		if got := uint32(code[4*i]) | uint32(code[4*i+1])<<8 | uint32(code[4*i+2])<<16 |
			uint32(code[4*i+3])<<24; got != w {
			t.Errorf("word %d is %08x, want %08x", i, got, w)
		}
	}
	if len(code) != 64+16 || !bytes.Equal(code[64:68], []byte{1, 0, 0x80, 0x3F}) {
		t.Errorf("%d bytes, the pool begins % x", len(code), code[64:])
	}
}

// TestRefusals checks that operands that cannot be encoded cause an error at Finish and never wrong
// bytes.
func TestRefusals(t *testing.T) {
	for name, f := range map[string]func(a *Asm){
		"dot product on a plain program": func(a *Asm) { a.I(SDOT, V(0), V(1), V(2)) },
		"wrong operand count":            func(a *Asm) { a.I(FADD, V(0), V(1)) },
		"general for vector":             func(a *Asm) { a.I(FADD, V(0), V(1), X(2)) },
		"number for register":            func(a *Asm) { a.I(ADD, X(0), X(1), Imm(2)) },
		"register 32":                    func(a *Asm) { a.I(FADD, V(32), V(1), V(2)) },
		"constant for register 32":       func(a *Asm) { a.Splat(32, 1) },
		"addition to register 32":        func(a *Asm) { a.AddImm(32, 0, 0x12000) },
		"branch on register 32":          func(a *Asm) { a.CBZ(32, a.Here()) },
		"branch on bit 32":               func(a *Asm) { a.TBZ(0, 32, a.Here()) },
		"offset off its scale":           func(a *Asm) { a.I(LDRQ, V(0), X(1), Imm(8)) },
		"offset too far":                 func(a *Asm) { a.I(LDRQ, V(0), X(1), Imm(65536)) },
		"negative offset":                func(a *Asm) { a.I(LDRX, X(0), X(1), Imm(-8)) },
		"lane 4":                         func(a *Asm) { a.I(FMLAL, V(0), V(1), V(2), Imm(4)) },
		"shift by 32 to the left":        func(a *Asm) { a.I(SHL4S, V(0), V(1), Imm(32)) },
		"shift by 0 to the right":        func(a *Asm) { a.I(USHR4S, V(0), V(1), Imm(0)) },
		"label never bound":              func(a *Asm) { a.B(a.NewLabel()) },
		"label bound twice":              func(a *Asm) { a.Bind(a.Here()) },
		"one counter for two loops":      func(a *Asm) { a.Loop(1, func() { a.Loop(1, func() {}) }) },
		"counter loaded in its loop":     func(a *Asm) { a.Loop(1, func() { a.I(LDRX, X(1), X(2), Imm(0)) }) },
		"counter moved on as an address": func(a *Asm) { a.Loop(1, func() { a.I(STRQP, V(0), X(1), Imm(16)) }) },
		"long addition to a counter":     func(a *Asm) { a.Loop(1, func() { a.AddImm(1, 1, 0x12000) }) },
		"branch too far": func(a *Asm) {
			l := a.Here()
			for range 1 << 13 {
				a.Zero(0)
			}
			a.Zero(0)
			a.TBZ(0, 0, l)
		},
	} {
		a := New(Base)
		f(a)
		if code, err := a.Finish(); err == nil {
			t.Errorf("%s: no error, bytes % x", name, code[:min(16, len(code))])
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	for b.Loop() {
		a := New(Base)
		for range 1000 {
			a.I(FMLAL, V(3), V(17), V(30), Imm(2))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/instr")
}
