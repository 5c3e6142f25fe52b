package ptx

import (
	"strings"
	"testing"

	"sandwich/microkernel/devgen"
)

// axpy returns the kernel y[i] = x[i]*a + y[i] of i < n.
func axpy(t *testing.T) *devgen.Kernel {
	b := devgen.NewBuilder("axpy", 64)
	x, y := b.Binding("x", devgen.Read), b.Binding("y", devgen.ReadWrite)
	a, n := b.Push("a", devgen.F32), b.Push("n", devgen.U32)
	i := b.MulAdd(b.Builtin(devgen.GroupX), b.U(64), b.Builtin(devgen.LocalIndex))
	b.If(b.Less(i, n), func() { b.Store(y, i, b.FMA(b.LoadF(x, i), a, b.LoadF(y, i))) })
	k, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

const axpyText = `.version 7.0
.target sm_75
.address_size 64

.visible .entry axpy(.param .u64 axpy_0, .param .u64 axpy_1, .param .u32 axpy_2, .param .u32 axpy_3)
.maxntid 64, 1, 1
{
	.reg .b32 %r<13>;
	.reg .f32 %f<13>;
	.reg .pred %p<13>;
	.reg .b64 %d<5>;
	ld.param.u64 %d0, [axpy_0];
	cvta.to.global.u64 %d0, %d0;
	ld.param.u64 %d1, [axpy_1];
	cvta.to.global.u64 %d1, %d1;
	ld.param.f32 %f1, [axpy_2];
	ld.param.b32 %r2, [axpy_3];
	mov.u32 %r3, %ctaid.x;
	mov.u32 %r5, %tid.x;
	shl.b32 %r7, %r3, 6;
	add.u32 %r8, %r7, %r5;
	setp.lt.u32 %p9, %r8, %r2;
	@!%p9 bra L1;
	mad.wide.u32 %d2, %r8, 4, %d0;
	ld.global.f32 %f10, [%d2+0];
	mad.wide.u32 %d3, %r8, 4, %d1;
	ld.global.f32 %f11, [%d3+0];
	fma.rn.f32 %f12, %f10, %f1, %f11;
	mad.wide.u32 %d4, %r8, 4, %d1;
	st.global.f32 [%d4+0], %f12;
L1:
	ret;
}
`

func TestEmit(t *testing.T) {
	text, err := Emit(axpy(t), 75)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(axpyText, "\n") {
		if got := strings.Split(text, "\n"); i >= len(got) || got[i] != line {
			t.Fatalf("line %d is not %q; the text is\n%s", i+1, line, text)
		}
	}
}

// TestTargets checks that texts name targets that PTX 7.0 knows.
func TestTargets(t *testing.T) {
	for target, want := range map[Target]string{61: "sm_61", 72: "sm_70", 75: "sm_75", 80: "sm_80", 90: "sm_80"} {
		text, err := Emit(axpy(t), target)
		if err != nil || !strings.Contains(text, ".target "+want+"\n") {
			t.Errorf("%d: %v, want %s", target, err, want)
		}
	}
}
