package asm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sandwich/microkernel/internal/asmtest"
)

// TestGolden pins the bytes of three draws of every instruction. The file was compared with llvm-mc
// when it was written.
func TestGolden(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(3, 4))}
	var got strings.Builder
	one := func(f func(a *Asm)) {
		a := New(AVX512)
		var line string
		a.Trace(func(s string) { line = s })
		f(a)
		if code, err := a.Finish(); err == nil {
			fmt.Fprintf(&got, "%-24x %s\n", code, line)
		}
	}
	for _, o := range all {
		for range 3 {
			if ops := g.instruction(o); ops != nil {
				one(func(a *Asm) { a.I(o, ops...) })
			}
		}
	}
	for range 100 {
		one(g.scalar)
	}
	asmtest.Golden(t, "testdata/golden.txt", got.String())
}

func TestLabelsAndPool(t *testing.T) {
	a := New(AVX2)
	out := a.NewLabel()
	a.Test(RAX, RAX)
	a.Jcc(Zero, out)
	top := a.Here()
	a.I(VBROADCASTSS, Y(0), a.ConstF32(1))
	a.I(VADDPS, Y(0), Y(0), a.Const(make([]byte, 32)))
	a.I(VBROADCASTSS, Y(1), a.ConstF32(1))
	a.Dec(RAX)
	a.Jcc(NotZero, top)
	a.Bind(out)
	a.Ret()
	code, err := a.Finish()
	if err != nil {
		t.Fatal(err)
	}
	want := []byte{
		0x48, 0x85, 0xC0, // test rax, rax
		0x0F, 0x84, 0x1F, 0, 0, 0, // jz out
		0xC4, 0xE2, 0x7D, 0x18, 0x05, 0x2E, 0, 0, 0, // vbroadcastss ymm0, [rip + 46]: 64
		0xC5, 0xFC, 0x58, 0x05, 0x46, 0, 0, 0, // vaddps ymm0, ymm0, [rip + 70]: 96
		0xC4, 0xE2, 0x7D, 0x18, 0x0D, 0x1D, 0, 0, 0, // vbroadcastss ymm1, [rip + 29]: 64, the same constant
		0x48, 0xFF, 0xC8, // dec rax
		0x75, 0xE1, // jnz top
		0xC3,
	}
	if !bytes.Equal(code[:len(want)], want) {
		t.Errorf("code\n got % x\nwant % x", code[:len(want)], want)
	}
	if len(code) != 64+64 || !bytes.Equal(code[64:68], []byte{0, 0, 0x80, 0x3F}) {
		t.Errorf("pool of %d bytes begins % x", len(code)-64, code[64:68])
	}
}

// TestRefusals checks that operands that cannot be encoded cause an error at Finish and never wrong
// bytes.
func TestRefusals(t *testing.T) {
	for name, f := range map[string]func(a *Asm){
		"AVX-512 on an AVX2 program":   func(a *Asm) { a.I(VADDPS, Z(0), Z(1), Z(2)) },
		"high register on AVX2":        func(a *Asm) { a.I(VADDPS, Y(0), Y(16), Y(2)) },
		"mask on AVX2":                 func(a *Asm) { a.I(VADDPS, Y(0).K(K1), Y(1), Y(2)) },
		"kmov on AVX2":                 func(a *Asm) { a.KMovW(K1, RAX) },
		"wrong operand count":          func(a *Asm) { a.I(VADDPS, Y(0), Y(1)) },
		"memory in a register field":   func(a *Asm) { a.I(VADDPS, At(RAX, 0), Y(1), Y(2)) },
		"vector register 32":           func(a *Asm) { a.level = AVX512; a.I(VADDPS, Z(0), Z(1), Z(32)) },
		"zeroing under k0":             func(a *Asm) { a.level = AVX512; a.I(VADDPS, Z(0).KZ(K0), Z(1), Z(2)) },
		"broadcast without one":        func(a *Asm) { a.I(VMOVUPS, Y(0), At(RAX, 0).Bcast()) },
		"label never bound":            func(a *Asm) { a.Jmp(a.NewLabel()) },
		"label bound twice":            func(a *Asm) { a.Bind(a.Here()) },
		"constant of three bytes":      func(a *Asm) { a.Const([]byte{1, 2, 3}) },
		"memory without a base":        func(a *Asm) { a.I(VMOVUPS, Y(0), Mem{base: noReg, index: noReg}) },
		"VEX-only above register 15":   func(a *Asm) { a.I(VPXOR, Y(0), Y(17), Y(0)) },
		"immediate missing at the end": func(a *Asm) { a.I(VPSLLD, Y(0), Y(1), Y(2)) },
	} {
		a := New(AVX2)
		f(a)
		if code, err := a.Finish(); err == nil {
			t.Errorf("%s: no error, bytes % x", name, code)
		}
	}
}

func TestAlign(t *testing.T) {
	for n := range 64 {
		a := New(AVX2)
		for range n {
			a.Ret()
		}
		a.Align(64)
		if a.Pos()%64 != 0 || a.Pos() > 64 {
			t.Errorf("%d bytes aligned to %d", n, a.Pos())
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	m := At(RSI, 256).Bcast()
	for b.Loop() {
		a := New(AVX512)
		for range 1000 {
			a.I(VFMADD231PS, Z(3), Z(17), m)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/instr")
}
