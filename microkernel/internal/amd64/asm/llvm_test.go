package asm

import (
	"math/rand/v2"
	"strings"
	"testing"

	"sandwich/microkernel/internal/asmtest"
)

// shape says what the operands of an op look like beyond its form.
type shape struct {
	dst    string // "k", "r32", "r64" or "" for a vector
	src    string // same, for the rm operand
	memRM  string // "only", "never" or ""
	noMask bool
	lens   []length
	srcLen func(length) length // length of the rm operand when it is a register
}

var (
	only128 = []length{l128}
	only256 = []length{l256}
	from256 = []length{l256, l512}
)

func narrower(n int) func(length) length {
	return func(l length) length { return length(max(0, int(l)-n)) }
}

func always(l length) func(length) length { return func(length) length { return l } }

var shapes = map[*Op]shape{
	VMOVNTPS: {memRM: "only", noMask: true}, VMOVSS: {memRM: "only", lens: only128}, VMOVSD: {memRM: "only",
		lens: only128},
	VMOVD: {src: "r32", lens: only128, noMask: true}, VMOVQ: {src: "r64", memRM: "never", lens: only128, noMask: true},
	VMOVHLPS: {memRM: "never", lens: only128, noMask: true}, VMOVLHPS: {memRM: "never", lens: only128, noMask: true},
	VMASKMOVPSL: {memRM: "only"}, VMASKMOVPSS: {memRM: "only"},
	VMOVMSKPS: {dst: "r32", memRM: "never"}, VPMOVMSKB: {dst: "r32", memRM: "never"},
	VBROADCASTSS: {srcLen: always(l128)}, VBROADCASTSD: {srcLen: always(l128), lens: from256},
	VPBROADCASTB: {srcLen: always(l128)}, VPBROADCASTW: {srcLen: always(l128)}, VPBROADCASTD: {srcLen: always(l128)},
	VPBROADCASTQ:  {srcLen: always(l128)},
	VPBROADCASTDR: {src: "r32", memRM: "never"}, VBROADCASTF128: {memRM: "only", lens: only256},
	VBROADCASTI128:  {memRM: "only", lens: only256},
	VBROADCASTF32X4: {memRM: "only", lens: from256}, VBROADCASTI32X4: {memRM: "only", lens: from256},
	VBROADCASTF64X4: {memRM: "only", lens: []length{l512}},
	VADDSS:          {lens: only128}, VSUBSS: {lens: only128}, VMULSS: {lens: only128}, VDIVSS: {lens: only128},
	VMAXSS: {lens: only128}, VMINSS: {lens: only128}, VSQRTSS: {lens: only128},
	VFMADD213SS: {lens: only128}, VFMADD231SS: {lens: only128}, VFNMADD213SS: {lens: only128},
	VFNMADD231SS: {lens: only128},
	VCMPPSK:      {dst: "k", noMask: true}, VPCMPDK: {dst: "k", noMask: true}, VPTESTMD: {dst: "k", noMask: true},
	VPMOVB2M:  {dst: "k", memRM: "never", noMask: true},
	VCVTPH2PS: {srcLen: narrower(1)}, VCVTPS2PH: {srcLen: narrower(1)},
	VPMOVSXBW: {srcLen: narrower(1)}, VPMOVSXWD: {srcLen: narrower(1)}, VPMOVZXBW: {srcLen: narrower(1)},
	VPMOVZXWD: {srcLen: narrower(1)},
	VPMOVSXBD: {srcLen: narrower(2)}, VPMOVZXBD: {srcLen: narrower(2)}, VPMOVDB: {srcLen: narrower(2)},
	VPMOVSDB: {srcLen: narrower(2)}, VPMOVDW: {srcLen: narrower(1)},
	VPERMPS: {lens: from256}, VPERMD: {lens: from256}, VPERMQ: {lens: from256}, VPERM2F128: {lens: only256},
	VPERM2I128: {lens: only256},
	VSHUFF32X4: {lens: from256}, VSHUFI32X4: {lens: from256},
	VEXTRACTF128: {srcLen: always(l128), lens: only256}, VEXTRACTI128: {srcLen: always(l128), lens: only256},
	VEXTRACTF32X4: {srcLen: always(l128), lens: from256}, VEXTRACTI32X4: {srcLen: always(l128), lens: from256},
	VEXTRACTF64X4: {srcLen: always(l256), lens: []length{l512}}, VEXTRACTI64X4: {srcLen: always(l256),
		lens: []length{l512}},
	VINSERTF128: {srcLen: always(l128), lens: only256}, VINSERTI128: {srcLen: always(l128), lens: only256},
	VINSERTF32X4: {srcLen: always(l128), lens: from256}, VINSERTI32X4: {srcLen: always(l128), lens: from256},
	VPEXTRW:      {memRM: "only", lens: only128},
	VINSERTF64X4: {srcLen: always(l256), lens: []length{l512}}, VINSERTI64X4: {srcLen: always(l256),
		lens: []length{l512}},
}

type generator struct{ r *rand.Rand }

func (g generator) mem() Mem {
	bases := []Reg{RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R12, R13, R15}
	disps := []int{0, 0, 4, 8, 64, 127, 128, -64, -128, 256, 1024, 4096, 8128, 8192, -8192, 12345, -70000}
	b, d := bases[g.r.IntN(len(bases))], disps[g.r.IntN(len(disps))]
	if g.r.IntN(2) == 0 {
		return At(b, d)
	}
	idx := []Reg{RAX, RCX, RBP, RDI, R9, R12, R13, R14}
	return AtIndex(b, idx[g.r.IntN(len(idx))], 1<<g.r.IntN(4), d)
}

func (g generator) vec(l length, high bool) Vec {
	n := 16
	if high {
		n = 32
	}
	return Vec{n: uint8(g.r.IntN(n)), l: l}
}

func (g generator) other(kind string) Operand {
	if kind == "k" {
		return Mask(g.r.IntN(8))
	}
	return Reg(g.r.IntN(16))
}

// instruction draws operands for the op; nil when this draw is not encodable by design.
func (g generator) instruction(o *Op) []Operand {
	s := shapes[o]
	lens := s.lens
	if lens == nil {
		lens = []length{l128, l256, l512}
	}
	l := lens[g.r.IntN(len(lens))]
	if o.has&evex == 0 && l == l512 || o.has&vex == 0 && o.has&evex == 0 {
		return nil
	}
	high := o.has&evex != 0 && g.r.IntN(2) == 0
	masked := o.has&evex != 0 && !s.noMask && g.r.IntN(3) == 0
	deco := func(v Vec) Vec {
		if !masked {
			return v
		}
		k := Mask(1 + g.r.IntN(7))
		if g.r.IntN(2) == 0 {
			return v.KZ(k)
		}
		return v.K(k)
	}
	regL := l
	rmL := l
	if s.srcLen != nil {
		rmL = s.srcLen(l)
	}
	useMem := g.r.IntN(2) == 0
	if s.memRM == "only" {
		useMem = true
	} else if s.memRM == "never" {
		useMem = false
	}
	if !useMem && (o == VPMOVSXBD) && l == l128 {
		rmL = l128
	}
	toMem := useMem && o.store != 0 && (o.form == mr || o.form == mri || g.r.IntN(2) == 0)
	var rmOp Operand
	switch {
	case useMem:
		m := g.mem()
		if o.has&bc != 0 && g.r.IntN(2) == 0 {
			m = m.Bcast()
		}
		if masked && toMem {
			m = m.K(Mask(1 + g.r.IntN(7)))
		}
		rmOp = m
	case s.src != "":
		rmOp = g.other(s.src)
	default:
		v := g.vec(rmL, high)
		if o.form == mr || o.form == mri || o.form == mvr {
			v = deco(v)
		}
		rmOp = v
	}
	var regOp Operand
	if s.dst != "" {
		regOp = g.other(s.dst)
	} else {
		v := g.vec(regL, high)
		if !toMem && (o.form == rm || o.form == rmi || o.form == rvm || o.form == rvmi) {
			v = deco(v)
		}
		regOp = v
	}
	return g.arrange(o, l, high, toMem, deco, regOp, rmOp)
}

// arrange puts the operands into the order of the op and draws those that are left.
func (g generator) arrange(o *Op, l length, high, toMem bool, deco func(Vec) Vec, regOp, rmOp Operand) []Operand {
	imm := Imm(g.r.IntN(256))
	if o == VCMPPS || o == VCMPPSK {
		imm = Imm(1 + g.r.IntN(7))
	}
	if o == VPCMPDK {
		imm = Imm(1 + g.r.IntN(2))
	}
	switch o.form {
	case rm:
		if toMem {
			return []Operand{rmOp, regOp}
		}
		return []Operand{regOp, rmOp}
	case mr:
		return []Operand{rmOp, regOp}
	case rmi:
		return []Operand{regOp, rmOp, imm}
	case mri:
		return []Operand{rmOp, regOp, imm}
	case rvm:
		return []Operand{regOp, g.vec(l, high), rmOp}
	case rvmi:
		return []Operand{regOp, g.vec(l, high), rmOp, imm}
	case rvmr:
		return []Operand{regOp, g.vec(l, high), rmOp, g.vec(l, false)}
	case mvr:
		return []Operand{rmOp, g.vec(l, high), regOp}
	default:
		v := deco(g.vec(l, high))
		return []Operand{v, rmOp, Imm(g.r.IntN(32))}
	}
}

// text32 spells general registers of 32-bit operands as the assembler wants them.
func text32(s shape, line string, ops []Operand) string {
	for i, x := range ops {
		r, is := x.(Reg)
		kind := s.dst
		if i > 0 {
			kind = s.src
		}
		if is && kind == "r32" {
			if i == 0 {
				line = strings.Replace(line, " "+r.text()+",", " "+reg32(r).text()+",", 1)
			} else {
				line = strings.TrimSuffix(line, r.text()) + reg32(r).text()
			}
		}
	}
	return line
}

// findLLVM is llvm-mc for x86-64 in the syntax of Trace.
func findLLVM(t *testing.T) asmtest.LLVM {
	t.Helper()
	return asmtest.FindLLVM(t, ".intel_syntax noprefix\n",
		"-triple=x86_64", "-mcpu=sapphirerapids", "-mattr=+avxvnni", "-x86-asm-syntax=intel", "-output-asm-variant=1")
}

// TestAgainstLLVM compares the bytes of random operands of every instruction with those of llvm-mc.
func TestAgainstLLVM(t *testing.T) {
	llvm := findLLVM(t)
	g := generator{rand.New(rand.NewPCG(1, 2))}
	var lines []string
	var want [][]byte
	for _, o := range all {
		for range 40 {
			ops := g.instruction(o)
			if ops == nil {
				continue
			}
			a := New(AVX512)
			var line string
			a.Trace(func(s string) { line = s })
			a.I(o, ops...)
			code, err := a.Finish()
			if err != nil {
				if strings.Contains(err.Error(), "has no encoding") {
					continue // VEX-only instructions with masks or high registers
				}
				t.Fatalf("%s %v: %v", o.name, ops, err)
			}
			lines = append(lines, text32(shapes[o], line, ops))
			want = append(want, code)
		}
	}
	for range 400 {
		a := New(AVX512)
		var line string
		a.Trace(func(s string) { line = s })
		g.scalar(a)
		code, err := a.Finish()
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
		want = append(want, code)
	}
	llvm.Compare(t, lines, want)
}

func (g generator) scalar(a *Asm) {
	r := func() Reg { return Reg(g.r.IntN(16)) }
	k := Mask(g.r.IntN(8))
	imms := []Imm32{0, 1, -1, 127, 128, -128, -129, 65536, -70000}
	i := imms[g.r.IntN(len(imms))]
	alus := []func(Reg, Operand){a.Add, a.Sub, a.And, a.Or, a.Xor, a.Cmp}
	f := alus[g.r.IntN(len(alus))]
	switch g.r.IntN(18) {
	case 0:
		a.Mov(r(), r())
	case 1:
		a.Mov(r(), g.mem())
	case 2:
		a.Mov(g.mem(), r())
	case 3:
		a.Mov32(r(), g.mem())
	case 4:
		a.MovSXD(r(), g.mem())
	case 5:
		f(r(), r())
	case 6:
		f(r(), i)
	case 7:
		f(r(), g.mem())
	case 8:
		a.Test(r(), r())
	case 9:
		a.Dec(r())
	case 10:
		a.IMul(r(), r())
	case 11:
		a.Shl(r(), uint8(1+g.r.IntN(63)))
	case 12:
		a.Shr(r(), uint8(1+g.r.IntN(63)))
	case 13:
		a.Lea(r(), g.mem())
	case 14:
		a.Prefetch(Hint(g.r.IntN(4)), g.mem())
	case 15:
		a.KMovW(k, r())
	case 16:
		a.KMovD(k, r())
	case 17:
		a.KMovQ(k, r())
	}
}
