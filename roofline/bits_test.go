package roofline

import "testing"

func TestBits(t *testing.T) {
	for typ, want := range map[string]float64{"f32": 32, "bf16": 16, "q8_0": 8.5, "q4_0": 4.5, "no such type": 32} {
		if got := Bits(typ); got != want {
			t.Errorf("%s has %g bits, want %g", typ, got, want)
		}
	}
}
