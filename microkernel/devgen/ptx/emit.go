package ptx

import (
	"fmt"
	"strings"

	"sandwich/microkernel/devgen"
)

// plain has the instructions of operations that are one instruction on operands.
var plain = map[devgen.Op]string{
	devgen.OpAdd: "add.u32", devgen.OpSub: "sub.u32", devgen.OpMul: "mul.lo.u32", devgen.OpDiv: "div.u32",
	devgen.OpRem: "rem.u32", devgen.OpAnd: "and.b32", devgen.OpOr: "or.b32", devgen.OpXor: "xor.b32",
	devgen.OpFAdd: "add.rn.f32", devgen.OpFSub: "sub.rn.f32", devgen.OpFMul: "mul.rn.f32", devgen.OpFMA: "fma.rn.f32",
	devgen.OpFDiv: "div.rn.f32", devgen.OpFSqrt: "sqrt.rn.f32",
	devgen.OpFromInt: "cvt.rn.f32.s32", devgen.OpBits: "mov.b32", devgen.OpFloat: "mov.b32",
	devgen.OpEqual: "setp.eq.u32", devgen.OpLess: "setp.lt.u32", devgen.OpLessSigned: "setp.lt.s32",
	devgen.OpFLess: "setp.lt.f32", devgen.OpAndBool: "and.pred", devgen.OpOrBool: "or.pred", devgen.OpNot: "not.pred",
}

var shifts = map[devgen.Op]string{devgen.OpShl: "shl.b32", devgen.OpShr: "shr.u32", devgen.OpSar: "shr.s32"}

var builtins = [...]string{devgen.LocalIndex: "%tid.x", devgen.GroupX: "%ctaid.x", devgen.GroupY: "%ctaid.y",
	devgen.GroupZ: "%ctaid.z"}

func (e *emitter) body(body []devgen.Instr) error {
	for i := range body {
		if err := e.instr(&body[i]); err != nil {
			return err
		}
	}
	return nil
}

func (e *emitter) instr(in *devgen.Instr) error {
	if op, ok := plain[in.Op]; ok {
		operands := []string{e.register(in.Dst[0])}
		for _, v := range in.Args {
			operands = append(operands, e.operand(v))
		}
		e.line("%s %s", op, strings.Join(operands, ", "))
		return nil
	}
	if op, ok := shifts[in.Op]; ok {
		e.line("%s %s, %s, %s", op, e.register(in.Dst[0]), e.operand(in.Args[0]), e.count(in.Args[1]))
		return nil
	}
	switch in.Op {
	case devgen.OpBuiltin:
		e.line("mov.u32 %s, %s", e.register(in.Dst[0]), builtins[in.Index])
	case devgen.OpPush:
		e.line("ld.param.%s %s, [%s]", e.typeOf(in.Dst[0]), e.register(in.Dst[0]),
			e.parameter(len(e.k.Bindings)+int(in.Index)))
	case devgen.OpDot4:
		e.line("dp4a.s32.s32 %s, %s, %s, %s", e.register(in.Dst[0]), e.inRegister(in.Args[0]), e.inRegister(in.Args[1]),
			e.inRegister(in.Args[2]))
	case devgen.OpFromHalf:
		h := e.temporary('h')
		e.line("cvt.u16.u32 %s, %s", h, e.operand(in.Args[0]))
		e.line("cvt.f32.f16 %s, %s", e.register(in.Dst[0]), h)
	case devgen.OpSelect:
		return e.selection(in)
	case devgen.OpIf:
		return e.branch(in)
	case devgen.OpFor:
		return e.loop(in)
	case devgen.OpLoadVar:
		e.line("mov.b32 %s, %s", e.register(in.Dst[0]), e.variable(in.Index))
	case devgen.OpStoreVar:
		e.line("mov.b32 %s, %s", e.variable(in.Index), e.operand(in.Args[0]))
	default:
		return e.memory(in)
	}
	return nil
}

// typeOf returns the type of a load of a value.
func (e *emitter) typeOf(v devgen.Value) string {
	if e.k.Values[v].Type == devgen.F32 {
		return "f32"
	}
	return "b32"
}

// count returns the count of a shift in its low five bits: PTX clamps larger ones.
func (e *emitter) count(v devgen.Value) string {
	if d := e.k.Values[v]; d.Const {
		return fmt.Sprint(d.Bits & 31)
	}
	t := e.temporary('t')
	e.line("and.b32 %s, %s, 31", t, e.operand(v))
	return t
}

func (e *emitter) selection(in *devgen.Instr) error {
	dst := in.Dst[0]
	if e.k.Values[dst].Type == devgen.Bool {
		return fmt.Errorf("a select of bools has no instruction")
	}
	e.line("selp.%s %s, %s, %s, %s", e.typeOf(dst), e.register(dst), e.operand(in.Args[1]), e.operand(in.Args[2]),
		e.operand(in.Args[0]))
	return nil
}

func (e *emitter) branch(in *devgen.Instr) error {
	out := e.label()
	e.line("@!%s bra %s", e.operand(in.Args[0]), out)
	if err := e.body(in.Body); err != nil {
		return err
	}
	e.place(out)
	return nil
}

func (e *emitter) loop(in *devgen.Instr) error {
	i, p := e.register(in.Dst[0]), e.temporary('q')
	head, out := e.label(), e.label()
	e.line("mov.u32 %s, %s", i, e.operand(in.Args[0]))
	e.place(head)
	e.line("setp.ge.u32 %s, %s, %s", p, i, e.operand(in.Args[1]))
	e.line("@%s bra %s", p, out)
	if err := e.body(in.Body); err != nil {
		return err
	}
	e.line("add.u32 %s, %s, %s", i, i, e.operand(in.Args[2]))
	e.line("bra %s", head)
	e.place(out)
	return nil
}

// memory translates operations on memory and those of all invocations.
func (e *emitter) memory(in *devgen.Instr) error {
	switch in.Op {
	case devgen.OpLoad:
		e.line("ld.global.%s %s, [%s]", e.typeOf(in.Dst[0]), e.register(in.Dst[0]), e.global(in.Index, in.Args[0]))
	case devgen.OpStore:
		to := e.global(in.Index, in.Args[0])
		e.line("st.global.%s [%s], %s", e.typeOf(in.Args[1]), to, e.inRegister(in.Args[1]))
	case devgen.OpLoad4:
		var to [4]string
		for i, v := range in.Dst {
			to[i] = e.register(v)
		}
		e.line("ld.global.v4.%s {%s}, [%s]", e.typeOf(in.Dst[0]), strings.Join(to[:], ", "),
			e.global(in.Index, in.Args[0]))
	case devgen.OpStore4:
		to := e.global(in.Index, in.Args[0])
		var from [4]string
		for i, v := range in.Args[1:] {
			from[i] = e.inRegister(v)
		}
		e.line("st.global.v4.%s [%s], {%s}", e.typeOf(in.Args[1]), to, strings.Join(from[:], ", "))
	case devgen.OpLoadShared:
		e.line("ld.shared.%s %s, [%s]", e.typeOf(in.Dst[0]), e.register(in.Dst[0]),
			e.sharedAddress(devgen.Array(in.Index), in.Args[0]))
	case devgen.OpStoreShared:
		to := e.sharedAddress(devgen.Array(in.Index), in.Args[0])
		e.line("st.shared.%s [%s], %s", e.typeOf(in.Args[1]), to, e.inRegister(in.Args[1]))
	case devgen.OpBarrier:
		e.line("bar.sync 0")
	case devgen.OpMMA:
		e.mma(in)
	case devgen.OpCopyAsync:
		to, from := e.sharedAddress(in.Array, in.Args[0]), e.global(in.Index, in.Args[1])
		e.line("cp.async.cg.shared.global [%s], [%s], 16", to, from)
	case devgen.OpCommitAsync:
		e.line("cp.async.commit_group")
	case devgen.OpWaitAsync:
		e.line("cp.async.wait_group %d", in.Index)
	default:
		return fmt.Errorf("unknown operation %s", in.Op)
	}
	return nil
}

// findSums notes the additions of constants.
func (e *emitter) findSums(body []devgen.Instr) {
	for i := range body {
		if in := &body[i]; in.Op == devgen.OpAdd && e.k.Values[in.Args[1]].Const {
			e.sums[in.Dst[0]] = in
		}
		e.findSums(body[i].Body)
	}
}

// offset divides an index into a value and a constant that is the offset of an address. Constants
// that stand for negative numbers stay in the value.
func (e *emitter) offset(index devgen.Value) (base devgen.Value, words int) {
	const limit = 1 << 20
	if in := e.sums[index]; in != nil {
		if c := e.k.Values[in.Args[1]].Bits; c < limit {
			return in.Args[0], int(c)
		}
	}
	return index, 0
}

// global returns the address of a word of a binding.
func (e *emitter) global(buffer int32, index devgen.Value) string {
	if d := e.k.Values[index]; d.Const {
		return fmt.Sprintf("%%d%d+%d", buffer, 4*uint64(d.Bits))
	}
	base, words := e.offset(index)
	t := e.temporary('d')
	e.line("mad.wide.u32 %s, %s, 4, %%d%d", t, e.operand(base), buffer)
	return fmt.Sprintf("%s+%d", t, 4*words)
}

// sharedAddress returns the address of a word of a shared array.
func (e *emitter) sharedAddress(array devgen.Array, index devgen.Value) string {
	at := e.shared[array]
	if d := e.k.Values[index]; d.Const {
		return fmt.Sprintf("%%smem+%d", at+4*int(d.Bits))
	}
	base, words := e.offset(index)
	t := e.temporary('t')
	e.line("mad.lo.u32 %s, %s, 4, %%smem", t, e.operand(base))
	return fmt.Sprintf("%s+%d", t, at+4*words)
}

func (e *emitter) mma(in *devgen.Instr) {
	half := (len(in.Args) - 4) / 3 // words of B
	list := func(values []devgen.Value) string {
		names := make([]string, len(values))
		for i, v := range values {
			names[i] = e.inRegister(v)
		}
		return "{" + strings.Join(names, ", ") + "}"
	}
	a, w, c := list(in.Args[:2*half]), list(in.Args[2*half:3*half]), list(in.Args[3*half:])
	e.line("mma.sync.aligned.m16n8k%d.row.col.s32.s8.s8.s32 %s, %s, %s, %s", 16*half, list(in.Dst), a, w, c)
}
