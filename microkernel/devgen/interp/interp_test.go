package interp

import (
	"strings"
	"testing"

	"sandwich/microkernel/devgen"
)

// TestRunRefuses runs kernels that violate a rule, each of which a device would run with an
// undefined result.
func TestRunRefuses(t *testing.T) {
	type build = func(b *devgen.Builder, local devgen.Value, s devgen.Array, in, out devgen.Buffer)
	for name, c := range map[string]struct {
		body build
		want string
	}{
		"read beyond": {func(b *devgen.Builder, local devgen.Value, _ devgen.Array, in, out devgen.Buffer) {
			b.Store(out, local, b.Load(in, b.Add(local, b.U(1))))
		}, "invocation 63: word 64 of in, which has 64"},
		"write to input": {func(b *devgen.Builder, local devgen.Value, _ devgen.Array, in, _ devgen.Buffer) {
			b.Store(in, local, local)
		}, "binding in does not allow it"},
		"read of output": {func(b *devgen.Builder, local devgen.Value, _ devgen.Array, _, out devgen.Buffer) {
			b.Store(out, local, b.Load(out, local))
		}, "binding out does not allow it"},
		"missing barrier": {func(b *devgen.Builder, local devgen.Value, s devgen.Array, _, out devgen.Buffer) {
			b.StoreShared(s, local, local)
			b.Store(out, local, b.LoadShared(s, b.Xor(local, b.U(1))))
		}, "which invocation 1 wrote without a barrier since"},
		"late write": {func(b *devgen.Builder, local devgen.Value, s devgen.Array, _, out devgen.Buffer) {
			b.StoreShared(s, local, local)
			b.Barrier()
			b.Store(out, local, b.LoadShared(s, b.Xor(local, b.U(1))))
			b.StoreShared(s, local, local)
		}, "which another one used without a barrier since"},
		"undefined": {func(b *devgen.Builder, local devgen.Value, s devgen.Array, _, out devgen.Buffer) {
			b.Store(out, local, b.LoadShared(s, local))
		}, "which was never written"},
		"two writers": {func(b *devgen.Builder, local devgen.Value, s devgen.Array, _, _ devgen.Buffer) {
			b.StoreShared(s, b.Shr(local, b.U(1)), local)
		}, "which another one used"},
		"shared beyond": {func(b *devgen.Builder, local devgen.Value, s devgen.Array, _, _ devgen.Buffer) {
			b.StoreShared(s, b.Add(local, b.U(1)), local)
		}, "word 64 of s, which has 64"},
		"barrier in a branch": {func(b *devgen.Builder, local devgen.Value, _ devgen.Array, _, _ devgen.Buffer) {
			b.If(b.Less(local, b.U(3)), b.Barrier)
		}, "3 of 64 invocations reach it"},
		"copy not awaited": {func(b *devgen.Builder, local devgen.Value, s devgen.Array, in, out devgen.Buffer) {
			b.If(b.Less(local, b.U(16)), func() {
				b.CopyAsync(s, b.Shl(local, b.U(2)), in, b.Shl(local, b.U(2)))
			})
			b.CommitAsync()
			b.WaitAsync(1)
			b.Store(out, local, b.LoadShared(s, local))
		}, "to which a copy is pending"},
		"copy without a barrier": {func(b *devgen.Builder, local devgen.Value, s devgen.Array, in, out devgen.Buffer) {
			b.If(b.Less(local, b.U(16)), func() {
				b.CopyAsync(s, b.Shl(local, b.U(2)), in, b.Shl(local, b.U(2)))
			})
			b.CommitAsync()
			b.WaitAsync(0)
			b.Store(out, local, b.LoadShared(s, local))
		}, "without a barrier since"},
		"copy of odd words": {func(b *devgen.Builder, local devgen.Value, s devgen.Array, in, _ devgen.Buffer) {
			b.CopyAsync(s, b.U(0), in, b.Add(local, b.U(1)))
		}, "words 1 of in to 0 of s"},
	} {
		b := devgen.NewBuilder("bad", 64)
		in, out := b.Binding("in", devgen.Read), b.Binding("out", devgen.Write)
		c.body(b, b.Builtin(devgen.LocalIndex), b.Shared("s", 64), in, out)
		k, err := b.Build()
		if err != nil {
			t.Fatal(name, err)
		}
		err = Run(k, [3]int{1, 1, 1}, [][]byte{make([]byte, 256), make([]byte, 256)}, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

func TestRunArguments(t *testing.T) {
	b := devgen.NewBuilder("arguments", 1)
	out, x := b.Binding("out", devgen.Write), b.Push("x", devgen.U32)
	b.Store(out, b.U(0), x)
	k, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	one := [3]int{1, 1, 1}
	if Run(k, one, nil, []uint32{1}) == nil || Run(k, one, [][]byte{make([]byte, 4)}, nil) == nil {
		t.Error("arguments are missing; want an error")
	}
	memory := make([]byte, 4)
	if err := Run(k, one, [][]byte{memory}, []uint32{0x01020304}); err != nil || memory[0] != 4 {
		t.Errorf("%v, memory %v", err, memory)
	}
}
