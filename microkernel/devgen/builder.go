package devgen

import (
	"fmt"
	"math"
)

// Builder builds a kernel. Its methods append instructions and return their results; they panic if
// types do not match, which is an error in the function that builds the kernel. Operations on
// constants are computed at once, and an operation that a value in scope has already computed is
// not repeated.
type Builder struct {
	k      Kernel
	body   *[]Instr
	consts map[Def]Value
	once   map[string]Value // built-in values and push words, which are read at the start
	head   []Instr
	scopes []map[expression]Value // operations of the present body and of those around it
	sums   map[Value]sum
}

// expression is an operation with its operands.
type expression struct {
	op   Op
	args [3]Value
}

// sum is a value plus a constant.
type sum struct {
	base     Value
	constant uint32
}

// NewBuilder begins a kernel with workgroups of size invocations.
func NewBuilder(name string, size int) *Builder {
	return builderOf(Kernel{Name: name, Size: size, Values: make([]Def, 1)})
}

// builderOf returns a builder that adds to a kernel without a body.
func builderOf(k Kernel) *Builder {
	b := &Builder{k: k, consts: map[Def]Value{}, once: map[string]Value{}, scopes: []map[expression]Value{{}},
		sums: map[Value]sum{}}
	b.body = &b.k.Body
	return b
}

// FewGroups sets [Kernel.FewGroups].
func (b *Builder) FewGroups() { b.k.FewGroups = true }

// Build returns the kernel, or the reason why it is not valid.
func (b *Builder) Build() (*Kernel, error) {
	b.k.Body = append(b.head, b.k.Body...)
	b.head = nil
	if err := b.k.Validate(); err != nil {
		return nil, err
	}
	return &b.k, nil
}

// Binding declares the next binding.
func (b *Builder) Binding(name string, access Access) Buffer {
	b.k.Bindings = append(b.k.Bindings, Binding{name, access})
	return Buffer(len(b.k.Bindings) - 1)
}

// Push declares the next push word and returns its value.
func (b *Builder) Push(name string, t Type) Value {
	b.k.Push = append(b.k.Push, name)
	return b.first("push "+name, Instr{Op: OpPush, Index: int32(len(b.k.Push) - 1)}, t)
}

// Shared declares a shared array. Its words are undefined until they are written.
func (b *Builder) Shared(name string, words int) Array {
	b.k.Shared = append(b.k.Shared, SharedArray{name, words})
	return Array(len(b.k.Shared) - 1)
}

// Builtin returns a built-in value.
func (b *Builder) Builtin(which int32) Value {
	return b.first(fmt.Sprint("builtin ", which), Instr{Op: OpBuiltin, Index: which}, U32)
}

// first adds an instruction without operands before all others.
func (b *Builder) first(key string, in Instr, t Type) Value {
	if v, ok := b.once[key]; ok {
		return v
	}
	v := b.value(Def{Type: t})
	in.Dst = []Value{v}
	b.head = append(b.head, in)
	b.once[key] = v
	return v
}

func (b *Builder) value(d Def) Value {
	b.k.Values = append(b.k.Values, d)
	return Value(len(b.k.Values) - 1)
}

// constant returns the value of a constant.
func (b *Builder) constant(t Type, bits uint32) Value {
	d := Def{Type: t, Const: true, Bits: bits}
	v, ok := b.consts[d]
	if !ok {
		v = b.value(d)
		b.consts[d] = v
	}
	return v
}

// U returns an integer constant.
func (b *Builder) U(x int) Value { return b.constant(U32, uint32(x)) }

// F returns a float32 constant.
func (b *Builder) F(x float32) Value { return b.constant(F32, math.Float32bits(x)) }

// emit appends an instruction with one result.
func (b *Builder) emit(in Instr, t Type) Value {
	v := b.value(Def{Type: t})
	in.Dst = []Value{v}
	b.append(in)
	return v
}

func (b *Builder) append(in Instr) { *b.body = append(*b.body, in) }

// op appends an operation of the table.
func (b *Builder) op(o Op, args ...Value) Value {
	info := &infos[o]
	if len(args) != len(info.args) {
		panic(fmt.Sprintf("%s: %s has %d operands, want %d", b.k.Name, o, len(args), len(info.args)))
	}
	for i, a := range args {
		b.want(o, a, info.args[i])
	}
	if v, ok := b.fold(o, args); ok {
		return v
	}
	return b.pure(o, info.result, args)
}

// pure appends an operation, or returns the value that has computed it.
func (b *Builder) pure(o Op, t Type, args []Value) Value {
	key := expression{op: o}
	copy(key.args[:], args)
	for _, s := range b.scopes {
		if v, ok := s[key]; ok {
			return v
		}
	}
	v := b.emit(Instr{Op: o, Args: args}, t)
	b.scopes[len(b.scopes)-1][key] = v
	return v
}

func (b *Builder) want(o Op, v Value, t Type) {
	if got := b.k.Values[v].Type; v == 0 || got != t {
		panic(fmt.Sprintf("%s: operand %d of %s is %s, want %s", b.k.Name, v, o, got, t))
	}
}

// Var declares a variable and sets it.
func (b *Builder) Var(init Value) Var {
	b.k.Vars = append(b.k.Vars, b.k.Values[init].Type)
	v := Var(len(b.k.Vars) - 1)
	b.Set(v, init)
	return v
}

// Get returns the present value of a variable.
func (b *Builder) Get(v Var) Value { return b.emit(Instr{Op: OpLoadVar, Index: int32(v)}, b.k.Vars[v]) }

// Set changes a variable.
func (b *Builder) Set(v Var, x Value) {
	b.want(OpStoreVar, x, b.k.Vars[v])
	b.append(Instr{Op: OpStoreVar, Index: int32(v), Args: []Value{x}})
}

// Load returns word i of a buffer.
func (b *Builder) Load(from Buffer, i Value) Value { return b.load(OpLoad, int32(from), i, U32) }

// LoadF returns word i of a buffer as a float32.
func (b *Builder) LoadF(from Buffer, i Value) Value { return b.load(OpLoad, int32(from), i, F32) }

// Load4 returns four words of a buffer from word i on, a multiple of four.
func (b *Builder) Load4(from Buffer, i Value) [4]Value { return b.load4(from, i, U32) }

// LoadF4 is Load4 of float32.
func (b *Builder) LoadF4(from Buffer, i Value) [4]Value { return b.load4(from, i, F32) }

func (b *Builder) load4(from Buffer, i Value, t Type) (x [4]Value) {
	b.want(OpLoad4, i, U32)
	for j := range x {
		x[j] = b.value(Def{Type: t})
	}
	b.append(Instr{Op: OpLoad4, Index: int32(from), Dst: x[:], Args: []Value{i}})
	return x
}

// LoadShared returns word i of a shared array.
func (b *Builder) LoadShared(from Array, i Value) Value {
	return b.load(OpLoadShared, int32(from), i, U32)
}

// LoadSharedF returns word i of a shared array as a float32.
func (b *Builder) LoadSharedF(from Array, i Value) Value {
	return b.load(OpLoadShared, int32(from), i, F32)
}

func (b *Builder) load(o Op, from int32, i Value, t Type) Value {
	b.want(o, i, U32)
	return b.emit(Instr{Op: o, Index: from, Args: []Value{i}}, t)
}

// Store writes a word or a float32 to word i of a buffer.
func (b *Builder) Store(to Buffer, i, x Value) { b.store(OpStore, int32(to), i, x) }

// Store4 writes four words or float32 of one type to a buffer from word i on, a multiple of four.
func (b *Builder) Store4(to Buffer, i Value, x [4]Value) {
	b.want(OpStore4, i, U32)
	for _, v := range x {
		if t := b.k.Values[v].Type; t == Bool || t != b.k.Values[x[0]].Type {
			panic(b.k.Name + ": a store of four values of distinct types, or of bools")
		}
	}
	b.append(Instr{Op: OpStore4, Index: int32(to), Args: append([]Value{i}, x[:]...)})
}

// StoreShared writes a word or a float32 to word i of a shared array.
func (b *Builder) StoreShared(to Array, i, x Value) { b.store(OpStoreShared, int32(to), i, x) }

func (b *Builder) store(o Op, to int32, i, x Value) {
	b.want(o, i, U32)
	if b.k.Values[x].Type == Bool {
		panic(b.k.Name + ": a bool is stored")
	}
	b.append(Instr{Op: o, Index: to, Args: []Value{i, x}})
}

// If runs body in the invocations in which c is true.
func (b *Builder) If(c Value, body func()) {
	b.want(OpIf, c, Bool)
	if d := b.k.Values[c]; d.Const {
		if d.Bits != 0 {
			body()
		}
		return
	}
	b.append(Instr{Op: OpIf, Args: []Value{c}, Body: b.nested(body)})
}

// For runs body with i = from, from+step, ... while i < to, unsigned. No i+step may wrap.
func (b *Builder) For(from, to, step Value, body func(i Value)) {
	for _, v := range []Value{from, to, step} {
		b.want(OpFor, v, U32)
	}
	i := b.value(Def{Type: U32})
	in := Instr{Op: OpFor, Dst: []Value{i}, Args: []Value{from, to, step}}
	in.Body = b.nested(func() { body(i) })
	b.append(in)
}

// Range is For from 0 by 1.
func (b *Builder) Range(n Value, body func(i Value)) { b.For(b.U(0), n, b.U(1), body) }

func (b *Builder) nested(body func()) (out []Instr) {
	outer := b.body
	b.body = &out
	b.scopes = append(b.scopes, map[expression]Value{})
	body()
	b.scopes = b.scopes[:len(b.scopes)-1]
	b.body = outer
	return out
}

// Barrier makes all invocations of the workgroup wait for each other and see each other's writes
// to shared arrays.
func (b *Builder) Barrier() { b.append(Instr{Op: OpBarrier}) }

// MMA returns a*b + c, see OpMMA. a has two or four words, w half as many, c four.
func (b *Builder) MMA(a, w, c []Value) []Value {
	if len(a) != 2*len(w) || len(w) != 1 && len(w) != 2 || len(c) != 4 {
		panic(fmt.Sprintf("%s: mma of %d, %d and %d words", b.k.Name, len(a), len(w), len(c)))
	}
	args := append(append(append([]Value{}, a...), w...), c...)
	for _, v := range args {
		b.want(OpMMA, v, U32)
	}
	dst := make([]Value, len(c))
	for i := range dst {
		dst[i] = b.value(Def{Type: U32})
	}
	b.append(Instr{Op: OpMMA, Dst: dst, Args: args})
	return dst
}

// CopyAsync begins to copy four words, see OpCopyAsync.
func (b *Builder) CopyAsync(to Array, i Value, from Buffer, j Value) {
	b.want(OpCopyAsync, i, U32)
	b.want(OpCopyAsync, j, U32)
	b.append(Instr{Op: OpCopyAsync, Index: int32(from), Array: to, Args: []Value{i, j}})
}

// CommitAsync makes a group of the copies begun since the last commit.
func (b *Builder) CommitAsync() { b.append(Instr{Op: OpCommitAsync}) }

// WaitAsync waits until at most n groups of the invocation are pending.
func (b *Builder) WaitAsync(n int) { b.append(Instr{Op: OpWaitAsync, Index: int32(n)}) }
