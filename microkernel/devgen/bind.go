package devgen

// Bind returns the kernel with push words replaced by constants, under another name. The operations
// on them are computed at once. Bindings and push words are those of k, so that a launch of k is
// also one of the result, which does not read the words that were replaced. Words of other names
// are ignored.
func Bind(k *Kernel, name string, words map[string]uint32) (*Kernel, error) {
	b := builderOf(Kernel{Name: name, Size: k.Size, Bindings: k.Bindings, Push: k.Push, Shared: k.Shared,
		Vars: k.Vars, Values: make([]Def, 1), Static: true, FewGroups: k.FewGroups})
	c := binder{Builder: b, from: k, words: words, values: make([]Value, len(k.Values))}
	c.copy(k.Body)
	return b.Build()
}

// binder copies the instructions of a kernel into a builder, which simplifies them.
type binder struct {
	*Builder
	from   *Kernel
	words  map[string]uint32
	values []Value // of the builder, by value of the kernel; 0: not computed yet
}

// of returns the builder's value for a value of the kernel.
func (c *binder) of(v Value) Value {
	if d := c.from.Values[v]; c.values[v] == 0 && d.Const {
		c.values[v] = c.constant(d.Type, d.Bits)
	}
	return c.values[v]
}

func (c *binder) copy(body []Instr) {
	for i := range body {
		c.instruction(&body[i])
	}
}

func (c *binder) instruction(in *Instr) {
	args := make([]Value, len(in.Args))
	for i, a := range in.Args {
		args[i] = c.of(a)
	}
	switch in.Op {
	case OpIf:
		c.If(args[0], func() { c.copy(in.Body) })
	case OpFor:
		c.For(args[0], args[1], args[2], func(i Value) {
			c.values[in.Dst[0]] = i
			c.copy(in.Body)
		})
	case OpMMA, OpLoad4:
		dst := make([]Value, len(in.Dst))
		for i, v := range in.Dst {
			dst[i] = c.value(c.from.Values[v])
			c.values[v] = dst[i]
		}
		c.append(Instr{Op: in.Op, Dst: dst, Args: args, Index: in.Index})
	default:
		if len(in.Dst) == 0 {
			c.append(Instr{Op: in.Op, Args: args, Index: in.Index, Array: in.Array})
			return
		}
		c.values[in.Dst[0]] = c.result(in, c.from.Values[in.Dst[0]].Type, args)
	}
}

// result returns the value of an instruction with one result.
func (c *binder) result(in *Instr, t Type, args []Value) Value {
	switch in.Op {
	case OpPush:
		name := c.from.Push[in.Index]
		if bits, ok := c.words[name]; ok {
			return c.constant(t, bits)
		}
		return c.first("push "+name, Instr{Op: OpPush, Index: in.Index}, t)
	case OpBuiltin:
		return c.Builtin(in.Index)
	case OpSelect:
		return c.Select(args[0], args[1], args[2])
	case OpLoad, OpLoadShared, OpLoadVar:
		return c.emit(Instr{Op: in.Op, Args: args, Index: in.Index, Array: in.Array}, t)
	}
	return c.op(in.Op, args...)
}
