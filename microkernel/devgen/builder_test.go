package devgen_test

import (
	"strings"
	"testing"

	"sandwich/microkernel/devgen"
)

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		size int
		body func(b *devgen.Builder)
		want string
	}{
		"size":   {0, func(*devgen.Builder) {}, "workgroups of 0 invocations"},
		"shared": {1, func(b *devgen.Builder) { b.Shared("s", 20000) }, "80000 bytes of shared memory exceed 49152"},
		"arguments": {1, func(b *devgen.Builder) {
			for range 17 {
				b.Binding("x", devgen.Read)
			}
		}, "136 bytes of arguments exceed 128"},
		"scope": {1, func(b *devgen.Builder) {
			var inner devgen.Value
			out := b.Binding("out", devgen.Write)
			b.If(b.Less(b.Builtin(devgen.LocalIndex), b.Push("n", devgen.U32)), func() { inner = b.Load(out, b.U(0)) })
			b.Store(out, b.U(0), inner)
		}, "outside its scope"},
		"counter": {1, func(b *devgen.Builder) {
			var counter devgen.Value
			out := b.Binding("out", devgen.Write)
			b.Range(b.U(3), func(i devgen.Value) { counter = i })
			b.Store(out, b.U(0), counter)
		}, "outside its scope"},
		"binding": {1, func(b *devgen.Builder) { b.Store(3, b.U(0), b.U(0)) }, "store has index 3 of 0"},
	} {
		b := devgen.NewBuilder("k", c.size)
		c.body(b)
		if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

// TestBuilderPanics checks that operands of the wrong type do not build a kernel.
func TestBuilderPanics(t *testing.T) {
	for name, f := range map[string]func(b *devgen.Builder){
		"add":    func(b *devgen.Builder) { b.Add(b.U(1), b.F(1)) },
		"fma":    func(b *devgen.Builder) { b.FMA(b.F(1), b.F(1), b.U(1)) },
		"if":     func(b *devgen.Builder) { b.If(b.U(1), func() {}) },
		"set":    func(b *devgen.Builder) { b.Set(b.Var(b.U(1)), b.F(1)) },
		"select": func(b *devgen.Builder) { b.Select(b.Less(b.U(1), b.U(2)), b.F(1), b.U(1)) },
		"none":   func(b *devgen.Builder) { b.Add(0, b.U(1)) },
		"mma":    func(b *devgen.Builder) { b.MMA(nil, nil, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s with operands of the wrong type does not panic", name)
				}
			}()
			f(devgen.NewBuilder("k", 1))
		}()
	}
}
