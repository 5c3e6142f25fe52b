package microkernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"sandwich/microkernel/internal/kerneltest"
	"sandwich/microkernel/internal/ref"
)

// TestWiden compares with the oracle, bit for bit, between guard pages and with nothing written
// beyond the range.
func TestWiden(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 21))
	for _, isa := range Host().ISAs() {
		for _, wt := range allWeightTypes() {
			for range 6 {
				k := wt.Block() * (1 + r.IntN(5))
				if !wt.Quantized() {
					k = 1 + r.IntN(90)
				}
				k0 := r.IntN(k/wt.KStep()+1) * wt.KStep()
				if k0 == k {
					k0 = 0
				}
				checkWiden(t, r, isa, wt, k, k0)
			}
		}
	}
}

func checkWiden(t *testing.T, r *rand.Rand, isa ISA, wt WeightType, k, k0 int) {
	w, err := NewWidener(isa, wt)
	if err != nil {
		t.Fatal(err)
	}
	l := Layout{wt, PanelWidth, k}
	raw, _ := rawWeights(r, wt, PanelWidth, k)
	packed := make([]byte, l.Bytes())
	if err := Pack(packed, l, 0, PanelWidth, raw, 0); err != nil {
		t.Fatal(err)
	}
	panel := kerneltest.Guarded(t, l.panelBytes(k))
	copy(panel, packed)
	got := kerneltest.Guarded(t, 64*(k-k0))
	for i := range got {
		got[i] = 0xEE
	}
	want := make([]ref.Row, k-k0)
	ref.Rows(wt, unsafe.Pointer(&panel[0]), k0, want)
	w.Run(unsafe.Pointer(&got[0]), unsafe.Pointer(&panel[0]), k0, k)
	for i := range want {
		for c, x := range want[i] {
			if g := binary.LittleEndian.Uint32(got[64*i+4*c:]); g != math.Float32bits(x) {
				t.Fatalf("%s %s k %d of [%d,%d), column %d: %#x, want %#x", isa, wt, k0+i, k0, k, c, g,
					math.Float32bits(x))
			}
		}
	}
}

func BenchmarkWiden(b *testing.B) {
	for _, isa := range Host().ISAs() {
		for _, wt := range allWeightTypes() {
			b.Run(fmt.Sprintf("%s/%s", isa, wt), func(b *testing.B) {
				w, err := NewWidener(isa, wt)
				if err != nil {
					b.Fatal(err)
				}
				const k = 512
				panel, dst := kerneltest.Map(b, PanelOffset(wt, k)), kerneltest.Map(b, 64*k)
				b.SetBytes(64 * k)
				for b.Loop() {
					w.Run(unsafe.Pointer(&dst[0]), unsafe.Pointer(&panel[0]), 0, k)
				}
			})
		}
	}
}
