package ptxtest

import (
	"fmt"
	"math"
	"strings"

	"sandwich/microkernel/internal/ref"
	"sandwich/microkernel/qtype"
)

func f32(x uint64) float32  { return math.Float32frombits(uint32(x)) }
func bits(x float32) uint64 { return uint64(math.Float32bits(x)) }

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// functions has the instructions that compute a result from up to three operands.
var functions = map[string]func(x, y, z uint64) uint64{
	"mov.u32": func(x, _, _ uint64) uint64 { return x }, "mov.b32": func(x, _, _ uint64) uint64 { return x },
	"cvta.to.global.u64": func(x, _, _ uint64) uint64 { return x },
	"add.u32":            func(x, y, _ uint64) uint64 { return uint64(uint32(x + y)) },
	"sub.u32":            func(x, y, _ uint64) uint64 { return uint64(uint32(x - y)) },
	"mul.lo.u32":         func(x, y, _ uint64) uint64 { return uint64(uint32(x * y)) },
	"mad.lo.u32":         func(x, y, z uint64) uint64 { return uint64(uint32(x*y + z)) },
	"mad.wide.u32":       func(x, y, z uint64) uint64 { return uint64(uint32(x))*uint64(uint32(y)) + z },
	"div.u32":            func(x, y, _ uint64) uint64 { return uint64(uint32(x) / uint32(y)) },
	"rem.u32":            func(x, y, _ uint64) uint64 { return uint64(uint32(x) % uint32(y)) },
	"and.b32":            func(x, y, _ uint64) uint64 { return x & y },
	"or.b32":             func(x, y, _ uint64) uint64 { return x | y },
	"xor.b32":            func(x, y, _ uint64) uint64 { return x ^ y },
	"shl.b32":            func(x, y, _ uint64) uint64 { return uint64(uint32(x) << y) }, // clamped
	"shr.u32":            func(x, y, _ uint64) uint64 { return uint64(uint32(x) >> y) },
	"shr.s32":            func(x, y, _ uint64) uint64 { return uint64(uint32(int32(x) >> y)) },
	"dp4a.s32.s32":       dp4a,
	"add.rn.f32":         func(x, y, _ uint64) uint64 { return bits(f32(x) + f32(y)) },
	"sub.rn.f32":         func(x, y, _ uint64) uint64 { return bits(f32(x) - f32(y)) },
	"mul.rn.f32":         func(x, y, _ uint64) uint64 { return bits(f32(x) * f32(y)) },
	"fma.rn.f32":         func(x, y, z uint64) uint64 { return bits(ref.FMA32(f32(x), f32(y), f32(z))) },
	"div.rn.f32":         func(x, y, _ uint64) uint64 { return bits(f32(x) / f32(y)) },
	"sqrt.rn.f32":        func(x, _, _ uint64) uint64 { return bits(float32(math.Sqrt(float64(f32(x))))) },
	"cvt.rn.f32.s32":     func(x, _, _ uint64) uint64 { return bits(float32(int32(x))) },
	"cvt.u16.u32":        func(x, _, _ uint64) uint64 { return uint64(uint16(x)) },
	"cvt.f32.f16":        func(x, _, _ uint64) uint64 { return bits(qtype.FloatFromHalf(uint16(x))) },
	"setp.eq.u32":        func(x, y, _ uint64) uint64 { return truth(x == y) },
	"setp.lt.u32":        func(x, y, _ uint64) uint64 { return truth(x < y) },
	"setp.ge.u32":        func(x, y, _ uint64) uint64 { return truth(x >= y) },
	"setp.lt.s32":        func(x, y, _ uint64) uint64 { return truth(int32(x) < int32(y)) },
	"setp.lt.f32":        func(x, y, _ uint64) uint64 { return truth(f32(x) < f32(y)) },
	"and.pred":           func(x, y, _ uint64) uint64 { return x & y },
	"or.pred":            func(x, y, _ uint64) uint64 { return x | y },
	"not.pred":           func(x, _, _ uint64) uint64 { return x ^ 1 },
	"selp.b32":           selp, "selp.f32": selp,
}

func selp(x, y, z uint64) uint64 {
	if z != 0 {
		return x
	}
	return y
}

func dp4a(x, y, z uint64) uint64 {
	sum := uint32(z)
	for i := 0; i < 32; i += 8 {
		sum += uint32(int32(int8(x>>i)) * int32(int8(y>>i)))
	}
	return uint64(sum)
}

func (w *warp) compute(in *instr) error {
	f := in.compute
	if f == nil || len(in.args) < 2 || len(in.args) > 4 || in.args[0].kind != register || in.pred >= 0 {
		return fmt.Errorf("unknown instruction")
	}
	x := [3]*[warpSize]uint64{&w.zeros, &w.zeros, &w.zeros}
	for i := range in.args[1:] {
		x[i] = w.values(&in.args[1+i], &w.operands[i])
	}
	d := &w.registers[in.args[0].index]
	for _, l := range w.active {
		d[l] = f(x[0][l], x[1][l], x[2][l])
	}
	return nil
}

// mma executes mma.m16n8k16 and m16n8k32 of signed bytes.
func (w *warp) mma(in *instr) error {
	half := (len(in.args) - 8) / 3 // words of B
	if name := strings.Join(in.op[3:], "."); name != fmt.Sprintf("m16n8k%d.row.col.s32.s8.s8.s32", 16*half) {
		return fmt.Errorf("unknown instruction")
	}
	args := in.args[4:]
	var a [16][32]int8
	var b [32][8]int8
	for l := range warpSize {
		g, t := l/4, l%4
		for i := range 4 * 2 * half {
			a[g+i/4%2*8][i/8*16+4*t+i%4] = int8(w.value(&args[i/4], l) >> (i % 4 * 8))
		}
		for i := range 4 * half {
			b[i/4*16+4*t+i%4][g] = int8(w.value(&args[2*half+i/4], l) >> (i % 4 * 8))
		}
	}
	for l := range warpSize {
		for e := range 4 {
			sum := uint32(w.value(&args[3*half+e], l))
			for k := range 16 * half {
				sum += uint32(int32(a[l/4+e/2*8][k]) * int32(b[k][l%4*2+e%2]))
			}
			w.registers[in.args[e].index][l] = uint64(sum)
		}
	}
	return nil
}
