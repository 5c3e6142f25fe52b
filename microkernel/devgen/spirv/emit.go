package spirv

import "sandwich/microkernel/devgen"

// emitter translates one kernel.
type emitter struct {
	module
	k *devgen.Kernel
	o Options

	words            id // type of a pointer to the words of a buffer
	push             id
	buffers          []id // pointers, loaded at the start
	shared           []id
	vars             []id
	values           []id
	localIndex, grid id
}

// declare declares arguments, shared arrays and variables, and loads the addresses of the bindings.
func (e *emitter) declare() {
	if e.o.KeepSubnormal {
		e.capability(capabilityDenormPreserve)
		e.modes = append(e.modes, instruction(opExecutionMode, uint32(e.main), modeDenormPreserve, 32)...)
	}
	array := e.newType(opTypeRuntimeArray, uint32(e.u32))
	e.decorate(array, decorationArrayStride, 4)
	block := e.newType(opTypeStruct, uint32(array))
	e.decorate(block, decorationBlock)
	e.decorateMember(block, 0, decorationOffset, 0)
	e.words = e.pointer(classBuffer, block)
	e.declarePush()
	e.localIndex, e.grid = e.builtin(builtInLocalIndex, e.u32), e.builtin(builtInWorkgroup, e.vec3u)
	for _, a := range e.k.Shared {
		array := e.typ(opTypeArray, uint32(e.u32), uint32(e.u(uint32(a.Words))))
		e.shared = append(e.shared, e.variable(classShared, array))
	}
	for _, t := range e.k.Vars {
		e.vars = append(e.vars, e.local(e.typeOf(t)))
	}
	e.values = make([]id, len(e.k.Values))
	for v, d := range e.k.Values {
		if d.Const {
			e.values[v] = e.constant(e.typeOf(d.Type), d.Bits)
		}
	}
	for i := range e.k.Bindings {
		e.buffers = append(e.buffers, e.argument(i, e.words))
	}
}

func (e *emitter) declarePush() {
	var members []uint32
	for range e.k.Bindings {
		members = append(members, uint32(e.words))
	}
	for range e.k.Push {
		members = append(members, uint32(e.u32))
	}
	t := e.newType(opTypeStruct, members...)
	e.decorate(t, decorationBlock)
	at := uint32(0)
	for i := range members {
		e.decorateMember(t, i, decorationOffset, at)
		if at += 4; i < len(e.k.Bindings) {
			at += 4
		}
	}
	e.push = e.variable(classPush, t)
}

// argument loads a member of the push constants.
func (e *emitter) argument(i int, t id) id {
	p := e.op(opAccessChain, e.pointer(classPush, t), e.push, e.u(uint32(i)))
	return e.op(opLoad, t, p)
}

func (e *emitter) builtin(which uint32, t id) id {
	v := e.variable(classInput, t)
	e.decorate(v, decorationBuiltIn, which)
	return v
}

func (e *emitter) typeOf(t devgen.Type) id {
	return [...]id{devgen.U32: e.u32, devgen.F32: e.f32, devgen.Bool: e.boolean}[t]
}

// finish returns the module.
func (e *emitter) finish() []uint32 { return e.assemble(e.k.Size) }

func (e *emitter) body(body []devgen.Instr) {
	for i := range body {
		e.instr(&body[i])
	}
}

func (e *emitter) instr(in *devgen.Instr) {
	arg := func(i int) id { return e.values[in.Args[i]] }
	switch in.Op {
	case devgen.OpIf:
		e.branch(arg(0), in.Body)
	case devgen.OpFor:
		e.loop(in)
	case devgen.OpBarrier:
		const workgroup, acquireReleaseShared = 2, 0x108
		e.do(opControlBarrier, e.u(workgroup), e.u(workgroup), e.u(acquireReleaseShared))
	case devgen.OpStoreVar:
		e.do(opStore, e.vars[in.Index], arg(0))
	case devgen.OpStore:
		e.do(opStore, e.element(in), e.toWord(in.Args[1]), alignedAccess, 4)
	case devgen.OpLoad4:
		for i, v := range in.Dst {
			w := e.op(opLoad, e.u32, e.word(in, i), alignedAccess, 4)
			e.values[v] = e.fromWord(w, e.typeOf(e.k.Values[v].Type))
		}
	case devgen.OpStore4:
		for i, v := range in.Args[1:] {
			e.do(opStore, e.word(in, i), e.toWord(v), alignedAccess, 4)
		}
	case devgen.OpStoreShared:
		e.do(opStore, e.element(in), e.toWord(in.Args[1]))
	default:
		dst := in.Dst[0]
		e.values[dst] = e.value(in, e.typeOf(e.k.Values[dst].Type))
	}
}

// element returns a pointer to a word of a buffer or a shared array.
func (e *emitter) element(in *devgen.Instr) id {
	i := e.values[in.Args[0]]
	if in.Op == devgen.OpLoadShared || in.Op == devgen.OpStoreShared {
		return e.op(opAccessChain, e.pointer(classShared, e.u32), e.shared[in.Index], i)
	}
	return e.op(opAccessChain, e.pointer(classBuffer, e.u32), e.buffers[in.Index], e.u(0), i)
}

// word returns a pointer to word i of those that Load4 or Store4 accesses.
func (e *emitter) word(in *devgen.Instr, i int) id {
	at := e.op(opIAdd, e.u32, e.values[in.Args[0]], e.u(uint32(i)))
	return e.op(opAccessChain, e.pointer(classBuffer, e.u32), e.buffers[in.Index], e.u(0), at)
}

// toWord returns a value as a word.
func (e *emitter) toWord(v devgen.Value) id {
	if e.k.Values[v].Type == devgen.U32 {
		return e.values[v]
	}
	return e.op(opBitcast, e.u32, e.values[v])
}

// fromWord returns a word as a value of a type.
func (e *emitter) fromWord(w, t id) id {
	if t == e.u32 {
		return w
	}
	return e.op(opBitcast, t, w)
}

func (e *emitter) branch(c id, body []devgen.Instr) {
	in, out := e.new(), e.new()
	e.do(opSelectionMerge, out, 0)
	e.do(opBranchConditional, c, in, out)
	e.do(opLabel, in)
	e.body(body)
	e.do(opBranch, out)
	e.do(opLabel, out)
}

func (e *emitter) loop(in *devgen.Instr) {
	from, to, step := e.values[in.Args[0]], e.values[in.Args[1]], e.values[in.Args[2]]
	counter := e.local(e.u32)
	e.do(opStore, counter, from)
	head, test, body, next, out := e.new(), e.new(), e.new(), e.new(), e.new()
	e.do(opBranch, head)
	e.do(opLabel, head)
	e.do(opLoopMerge, out, next, 0)
	e.do(opBranch, test)
	e.do(opLabel, test)
	i := e.op(opLoad, e.u32, counter)
	e.do(opBranchConditional, e.op(opULessThan, e.boolean, i, to), body, out)
	e.do(opLabel, body)
	e.values[in.Dst[0]] = i
	e.body(in.Body)
	e.do(opBranch, next)
	e.do(opLabel, next)
	e.do(opStore, counter, e.op(opIAdd, e.u32, i, step))
	e.do(opBranch, head)
	e.do(opLabel, out)
}
