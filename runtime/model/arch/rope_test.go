package arch_test

import (
	"testing"

	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/synth"
)

// TestRotationsOfFamilies checks that LongRoPE has its factors in any family, that an attention
// temperature applies with and without YaRN, that layers with a window have a base of their own,
// and that granite may have no positions.
func TestRotationsOfFamilies(t *testing.T) {
	long := synth.Small("llama")
	long.Original = 64
	mistral := synth.Small("mistral3")
	mistral.Yarn, mistral.AttnTemperatureLength = nil, 77
	near := synth.Small("gpt-oss")
	near.Windows.Base = 5
	still := synth.Small("granite")
	still.NoRope = true
	for _, c := range []struct {
		model.Config
		holds func(op model.Op) bool
	}{
		{long, func(op model.Op) bool { return op.Rope.Long != nil && op.Rope.Long.Original == 64 }},
		{mistral, func(op model.Op) bool { return op.AttnTemperature.Length == 77 }},
		{near, func(op model.Op) bool { return (op.Rope.Base == 5) == (op.Layer == 0) && op.Rope.Yarn != nil }},
		{still, func(op model.Op) bool { return op.Rope == nil }},
	} {
		m, err := arch.Model(c.Config)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range m.Ops {
			if op.Kind == model.OpRotate && !c.holds(op) {
				t.Errorf("%s, layer %d: %+v, %+v", c.Arch, op.Layer, op.Rope, op.AttnTemperature)
			}
		}
	}
}
