package amd64

import (
	"math"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/amd64/gemm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// peak describes the fastest multiply-add of one data type.
type peak struct {
	needs   kernel.Features // beyond those of the instruction set
	op      *asm.Op
	perLane int    // operations of one lane of one instruction
	x, y    uint32 // factors, neither zero nor subnormal: operands affect the clock rate of a core
}

var (
	// acc = acc*x + y, which stays near 1
	floatPeak = peak{0, asm.VFMADD213PS, 2, math.Float32bits(0.999), math.Float32bits(0.001)}
	peaksAVX2 = map[string]peak{
		"f32":  floatPeak,
		"int8": {kernel.HasAVXVNNI, asm.VPDPBUSDV, 8, 0x5a3c6921, 0x1ee5372d},
	}
	peaksAVX512 = map[string]peak{
		"f32":  floatPeak,
		"int8": {kernel.HasVNNI, asm.VPDPBUSD, 8, 0x5a3c6921, 0x1ee5372d},
		"bf16": {kernel.HasBF16, asm.VDPBF16PS, 4, 0x3f7f3f7f, 0xba833a83}, // 0.996 times minus and plus 0.001
	}
)

// needsOf returns the features that the types of peaks need.
func needsOf(peaks map[string]peak) map[string]kernel.Features {
	out := map[string]kernel.Features{}
	for typ, p := range peaks {
		out[typ] = p.needs
	}
	return out
}

// probes implements kernel.ProbeGenerator for one level of amd64.
type probes struct {
	name      string
	level     asm.Level
	lanes     int
	registers int
	peaks     map[string]peak
	amx       bool // the level has AMX
}

// Peak emits n iterations of independent multiply-adds on 12 (AVX2) or 24 (AVX-512) accumulators,
// more than latency times ports of any known core, with the factors in registers. Arguments:
// [RDI] = n.
func (t probes) Peak(typ string, f kernel.Features) (code []byte, ops int, err error) {
	if typ == "int8" && f.Has(kernel.HasAMX) && t.amx {
		return t.amxPeak()
	}
	p, accs := t.peaks[typ], t.registers*3/4
	x, y := t.vec(t.registers-2), t.vec(t.registers-1)
	code, err = t.assemble(func(a *asm.Asm) {
		for i := range accs {
			t.zero(a, i)
		}
		a.I(asm.VPBROADCASTD, x, a.ConstU32(p.x))
		a.I(asm.VPBROADCASTD, y, a.ConstU32(p.y))
		a.Mov(asm.RCX, asm.At(asm.RDI, 0))
		a.Align(64)
		loop := a.Here()
		for i := range accs {
			a.I(p.op, t.vec(i), x, y)
		}
		a.Dec(asm.RCX)
		a.Jcc(asm.NotZero, loop)
		a.VZeroUpper()
		a.Ret()
	})
	return code, accs * t.lanes * p.perLane, err
}

// vec returns vector register i.
func (t probes) vec(i int) asm.Vec {
	if t.level == asm.AVX512 {
		return asm.Z(i)
	}
	return asm.Y(i)
}

// zero clears vector register i.
func (t probes) zero(a *asm.Asm, i int) {
	if t.level == asm.AVX512 {
		a.I(asm.VPXORD, asm.Z(i), asm.Z(i), asm.Z(i))
	} else {
		a.I(asm.VPXOR, asm.Y(i), asm.Y(i), asm.Y(i))
	}
}

// Reader emits passes over blocks of ReaderBlock bytes that combine them in four accumulators by
// exclusive or. Prefetches past the end are harmless. Arguments: [RDI] = pointer, [RDI+8] = blocks,
// [RDI+16] = passes, [RDI+24] = result.
func (t probes) Reader(prefetch bool) ([]byte, error) {
	xor := asm.VPXOR
	if t.level == asm.AVX512 {
		xor = asm.VPXORD
	}
	size := t.lanes * 4
	return t.assemble(func(a *asm.Asm) {
		for i := range 4 {
			t.zero(a, i)
		}
		a.Mov(asm.RDX, asm.At(asm.RDI, 16))
		pass := a.Here()
		a.Mov(asm.RSI, asm.At(asm.RDI, 0))
		a.Mov(asm.RCX, asm.At(asm.RDI, 8))
		a.Align(64)
		loop := a.Here()
		for off := 0; off < kernel.ReaderBlock; off += size {
			if prefetch && off%64 == 0 {
				a.Prefetch(asm.T0, asm.At(asm.RSI, off+kernel.ReadAhead))
			}
			acc := off / size % 4
			a.I(xor, t.vec(acc), t.vec(acc), asm.At(asm.RSI, off))
		}
		a.Add(asm.RSI, asm.Imm32(kernel.ReaderBlock))
		a.Dec(asm.RCX)
		a.Jcc(asm.NotZero, loop)
		a.Dec(asm.RDX)
		a.Jcc(asm.NotZero, pass)
		for i := range 3 {
			a.I(xor, t.vec(0), t.vec(0), t.vec(i+1))
		}
		t.fold(a)
		a.I(asm.VMOVQ, asm.At(asm.RDI, 24), asm.X(0))
		a.VZeroUpper()
		a.Ret()
	})
}

// fold combines vector register 0 in its low 64 bits by exclusive or.
func (t probes) fold(a *asm.Asm) {
	if t.level == asm.AVX512 {
		a.I(asm.VEXTRACTI64X4, asm.Y(1), asm.Z(0), asm.Imm(1))
		a.I(asm.VPXOR, asm.Y(0), asm.Y(0), asm.Y(1))
	}
	a.I(asm.VEXTRACTI128, asm.X(1), asm.Y(0), asm.Imm(1))
	a.I(asm.VPXOR, asm.X(0), asm.X(0), asm.X(1))
	a.I(asm.VPSHUFD, asm.X(1), asm.X(0), asm.Imm(0xEE)) // the high half
	a.I(asm.VPXOR, asm.X(0), asm.X(0), asm.X(1))
}

// amxPeak returns Peak for bytes on AMX: six tiles accumulate products of the other two.
func (t probes) amxPeak() (code []byte, ops int, err error) {
	const accs, x, y, k = 6, asm.Tile(6), asm.Tile(7), 64
	code, err = t.assemble(func(a *asm.Asm) {
		var rows, bytes [8]uint8
		var data [64]byte
		for i := range rows {
			rows[i], bytes[i] = gemm.AMXRows, k
		}
		for i := range data {
			data[i] = byte(37*i + 90)
		}
		a.SetTiles(rows, bytes)
		a.Lea(asm.RDX, a.Const(data[:]))
		a.Xor(asm.RAX, asm.RAX) // all rows are the same
		a.TileLoad(x, asm.AtIndex(asm.RDX, asm.RAX, 1, 0))
		a.TileLoad(y, asm.AtIndex(asm.RDX, asm.RAX, 1, 0))
		for i := range asm.Tile(accs) {
			a.TileZero(i)
		}
		a.Mov(asm.RCX, asm.At(asm.RDI, 0))
		a.Align(64)
		loop := a.Here()
		for i := range asm.Tile(accs) {
			a.TileDot(asm.TDPBSSD, i, x, y)
		}
		a.Dec(asm.RCX)
		a.Jcc(asm.NotZero, loop)
		a.TileRelease()
		a.VZeroUpper()
		a.Ret()
	})
	return code, accs * 2 * gemm.AMXRows * qtype.PanelWidth * k, err
}

// assemble returns the code that emit emits. An instruction beyond the level is an error.
func (t probes) assemble(emit func(a *asm.Asm)) ([]byte, error) {
	a := asm.New(t.level)
	emit(a)
	return a.Finish()
}
