// Package ptx translates kernels of package devgen to PTX text for CUDA devices.
package ptx

import (
	"fmt"
	"strings"

	"sandwich/microkernel/devgen"
)

// Target is the compute capability of a device: 75 for sm_75.
type Target int

// LeastTarget is the least target. It is the first with dp4a, a dot product of four bytes.
const LeastTarget Target = 61

// MatrixTarget is the first target with MMA and asynchronous copies.
const MatrixTarget Target = 80

// targets are the targets of texts: those of PTX 7.0. Later devices run them too.
var targets = []Target{MatrixTarget, 75, 70, LeastTarget}

// named returns the target of a text for a device: the newest that is not newer than the device.
func (t Target) named() Target {
	for _, n := range targets {
		if n <= t {
			return n
		}
	}
	return LeastTarget
}

// Emit returns the text of a module with the kernel as an entry of its name. Its parameters are the
// arguments of the dispatch: the addresses of the bindings, then the push words.
func Emit(k *devgen.Kernel, t Target) (string, error) {
	switch {
	case t < LeastTarget:
		return "", fmt.Errorf("kernel %s: devices of compute capability %d are not supported; use %d or later", k.Name,
			t, LeastTarget)
	case t < MatrixTarget && k.NeedsMatrixUnit():
		return "", fmt.Errorf("kernel %s needs a device of compute capability %d, not %d", k.Name, MatrixTarget, t)
	}
	e := &emitter{k: k, shared: make([]int, len(k.Shared)), sums: map[devgen.Value]*devgen.Instr{}}
	e.findSums(k.Body)
	at := 0
	for i, a := range k.Shared {
		e.shared[i] = at
		at += (4*a.Words + 15) &^ 15
	}
	for i := range k.Bindings {
		e.line("ld.param.u64 %%d%d, [%s]", i, e.parameter(i))
		e.line("cvta.to.global.u64 %%d%d, %%d%d", i, i)
	}
	e.doubles = len(k.Bindings)
	if at > 0 {
		e.line("mov.u32 %%smem, smem")
	}
	if err := e.body(k.Body); err != nil {
		return "", fmt.Errorf("kernel %s: %w", k.Name, err)
	}
	return e.assemble(t.named(), at), nil
}

// emitter translates one kernel. Register %rN, %fN or %pN holds value N, %xN and %yN variable N of
// integers and of floats, and %tN, %hN, %qN and %dN are temporary; %dN also holds the address of
// binding N.
type emitter struct {
	k       *devgen.Kernel
	text    strings.Builder
	shared  []int                          // offsets of the shared arrays in bytes
	sums    map[devgen.Value]*devgen.Instr // additions of constants
	words   int                            // temporaries
	halves  int
	preds   int
	doubles int
	labels  int
}

func (e *emitter) parameter(i int) string { return fmt.Sprintf("%s_%d", e.k.Name, i) }

// line appends an instruction.
func (e *emitter) line(format string, args ...any) {
	fmt.Fprintf(&e.text, "\t"+format+";\n", args...)
}

func (e *emitter) label() string {
	e.labels++
	return fmt.Sprintf("L%d", e.labels)
}

func (e *emitter) place(label string) { e.text.WriteString(label + ":\n") }

// temporary returns a new register: a word (t), half a word (h), a predicate (q) or an address (d).
func (e *emitter) temporary(class byte) string {
	n := map[byte]*int{'t': &e.words, 'h': &e.halves, 'q': &e.preds, 'd': &e.doubles}[class]
	*n++
	return fmt.Sprintf("%%%c%d", class, *n-1)
}

// register returns the register of a value.
func (e *emitter) register(v devgen.Value) string {
	return fmt.Sprintf("%%%c%d", [...]byte{devgen.U32: 'r', devgen.F32: 'f', devgen.Bool: 'p'}[e.k.Values[v].Type], v)
}

// operand returns a value as an operand: its register, or a constant.
func (e *emitter) operand(v devgen.Value) string {
	switch d := e.k.Values[v]; {
	case !d.Const:
		return e.register(v)
	case d.Type == devgen.F32:
		return fmt.Sprintf("0f%08X", d.Bits)
	default:
		return fmt.Sprint(d.Bits)
	}
}

// inRegister returns a register that holds a value.
func (e *emitter) inRegister(v devgen.Value) string {
	if d := e.k.Values[v]; d.Const {
		t := e.temporary('t')
		e.line("mov.b32 %s, %d", t, d.Bits)
		return t
	}
	return e.register(v)
}

// variable returns the register of a variable.
func (e *emitter) variable(i int32) string {
	if e.k.Vars[i] == devgen.F32 {
		return fmt.Sprintf("%%y%d", i)
	}
	return fmt.Sprintf("%%x%d", i)
}

// assemble returns the module.
func (e *emitter) assemble(t Target, shared int) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".version 7.0\n.target sm_%d\n.address_size 64\n\n.visible .entry %s(", t, e.k.Name)
	for i := range len(e.k.Bindings) + len(e.k.Push) {
		typ, sep := "u32", ", "
		if i < len(e.k.Bindings) {
			typ = "u64"
		}
		if i == 0 {
			sep = ""
		}
		fmt.Fprintf(&b, "%s.param .%s %s", sep, typ, e.parameter(i))
	}
	fmt.Fprintf(&b, ")\n.maxntid %d, 1, 1\n", e.k.Size)
	if e.k.FewGroups {
		b.WriteString(".minnctapersm 2\n")
	}
	b.WriteString("{\n")
	values, vars := len(e.k.Values), len(e.k.Vars)
	for _, r := range []struct {
		typ, name string
		n         int
	}{{"b32", "r", values}, {"f32", "f", values}, {"pred", "p", values}, {"b32", "x", vars}, {"f32", "y", vars},
		{"b32", "t", e.words}, {"b16", "h", e.halves}, {"pred", "q", e.preds}, {"b64", "d", e.doubles}} {
		if r.n > 0 {
			fmt.Fprintf(&b, "\t.reg .%s %%%s<%d>;\n", r.typ, r.name, r.n)
		}
	}
	if shared > 0 {
		fmt.Fprintf(&b, "\t.reg .b32 %%smem;\n\t.shared .align 16 .b8 smem[%d];\n", shared)
	}
	b.WriteString(e.text.String())
	b.WriteString("\tret;\n}\n")
	return b.String()
}
