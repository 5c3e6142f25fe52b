package spirv

import (
	"slices"
	"testing"

	"sandwich/microkernel/devgen"
)

// build returns a kernel with an fma, a division and a square root.
func build(t *testing.T) *devgen.Kernel {
	b := devgen.NewBuilder("k", 32)
	x, y := b.Binding("x", devgen.Read), b.Binding("y", devgen.Write)
	i := b.Builtin(devgen.LocalIndex)
	e := b.LoadF(x, i)
	b.Store(y, i, b.FDiv(b.FMA(e, e, e), b.FSqrt(e)))
	k, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// instructions returns the operations of a module, and whether its words are whole instructions.
func instructions(t *testing.T, words []uint32) (ops []uint32) {
	t.Helper()
	if words[0] != 0x07230203 {
		t.Fatalf("magic number %#x", words[0])
	}
	for at := 5; at < len(words); {
		n := int(words[at] >> 16)
		if n == 0 || at+n > len(words) {
			t.Fatalf("word %d begins no instruction", at)
		}
		ops = append(ops, words[at]&0xffff)
		at += n
	}
	return ops
}

// TestOptions checks that each option replaces the operation that it names.
func TestOptions(t *testing.T) {
	has := func(o Options, op uint32) bool {
		words, err := Emit(build(t), o)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(instructions(t, words), op)
	}
	for _, c := range []struct {
		name string
		o    Options
		op   uint32
		want bool
	}{
		{"division", Options{}, opFDiv, true}, {"SoftDiv", Options{SoftDiv: true}, opFDiv, false},
		{"no float64", Options{}, opFConvert, false}, {"SoftFMA", Options{SoftFMA: true}, opFConvert, true},
		{"fma", Options{SoftSqrt: true}, opExtInst, true},
		{"SoftFMA and SoftSqrt", Options{SoftFMA: true, SoftSqrt: true}, opExtInst, false},
	} {
		if has(c.o, c.op) != c.want {
			t.Errorf("%s: instruction %d in the module: %v, want %v", c.name, c.op, !c.want, c.want)
		}
	}
	plain, err := Emit(build(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := Emit(build(t), Options{KeepSubnormal: true})
	if err != nil || len(kept) <= len(plain) {
		t.Errorf("KeepSubnormal adds nothing (%v)", err)
	}
}

// TestEmitIsDeterministic checks that a kernel gives the same module every time, as a cache of
// compiled kernels needs.
func TestEmitIsDeterministic(t *testing.T) {
	first, err := Emit(build(t), Options{SoftFMA: true, SoftDiv: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		again, err := Emit(build(t), Options{SoftFMA: true, SoftDiv: true})
		if err != nil || !slices.Equal(first, again) {
			t.Fatal("the modules of one kernel differ")
		}
	}
}
