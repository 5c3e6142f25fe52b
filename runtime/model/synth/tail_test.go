package synth

import (
	"testing"

	"sandwich/runtime/model/modelshape"
)

// TestTail checks which tensors of which layers are scaled, for every family.
func TestTail(t *testing.T) {
	for _, family := range Families() {
		c, _ := Tiny(family)
		want, got := modelshape.Tensors(c), modelshape.Tensors(c)
		Tail{From: 2, Scale: 0.5}.scale(got)
		scaled := map[int]int{}
		for i := range got {
			switch {
			case got[i].Std == want[i].Std && got[i].Mean == want[i].Mean:
			case got[i].Std != want[i].Std/2 || got[i].Mean != want[i].Mean/2:
				t.Errorf("%s: %s has mean %g and deviation %g", family, got[i].Name, got[i].Mean, got[i].Std)
			default:
				scaled[got[i].Layer]++
			}
		}
		for layer := range c.Layers {
			if (scaled[layer] >= 2) != (layer >= 2) {
				t.Errorf("%s: %d tensors of layer %d are scaled", family, scaled[layer], layer)
			}
		}
		if scaled[-1] > 0 {
			t.Errorf("%s: tensors outside the layers are scaled", family)
		}
	}
}
