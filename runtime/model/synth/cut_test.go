package synth

import (
	"strings"
	"testing"

	"sandwich/microkernel/qtype"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/tensors"
)

// TestCutKeepsTheFirstLayers checks that a cut model has the shapes of the first layers of the
// whole model.
func TestCutKeepsTheFirstLayers(t *testing.T) {
	for _, family := range Families() {
		whole, _ := Tiny(family)
		cut, err := Cut(whole, 4, 0)
		if err != nil {
			t.Errorf("%s: %v", family, err)
			continue
		}
		if cut.Layers != 4 || cut.Name != whole.Name+"-4l" {
			t.Errorf("%s: %d layers, called %s", family, cut.Layers, cut.Name)
		}
		all := map[string]tensors.Spec{}
		for _, s := range modelshape.Tensors(whole) {
			all[s.Name] = s
		}
		n := 0
		for _, s := range modelshape.Tensors(cut) {
			if w := all[s.Name]; s.Layer >= 0 && (w.Rows() != s.Rows() || w.Dims[0] != s.Dims[0]) {
				t.Errorf("%s: %s has %v, in the whole model %v", family, s.Name, s.Dims, w.Dims)
			}
			if n++; s.Layer >= 4 {
				t.Errorf("%s: %s is of layer %d", family, s.Name, s.Layer)
			}
		}
		if n >= len(all) {
			t.Errorf("%s: %d tensors of %d are left", family, n, len(all))
		}
	}
}

// TestCutShared checks the number of layers that share keys and values: of 35 layers, the last 20
// do.
func TestCutShared(t *testing.T) {
	whole, err := Preset("gemma4-e2b")
	if err != nil {
		t.Fatal(err)
	}
	for layers, shared := range map[int]int{4: 0, 15: 0, 20: 5, 35: 20} {
		if c, err := Cut(whole, layers, 0); err != nil || c.SharedKV != shared {
			t.Errorf("%d layers: %d of them share, %v; want %d", layers, c.SharedKV, err, shared)
		}
	}
}

func TestCutExperts(t *testing.T) {
	c, err := Preset("gpt-oss-20b")
	if err != nil {
		t.Fatal(err)
	}
	whole := c.Experts
	if c, err = Cut(c, 2, 8); err != nil || c.Experts.Count != 8 || c.Experts.Used != whole.Used ||
		c.Name != "gpt-oss-20b-2l-8x" {
		t.Errorf("%+v, %v", c, err)
	}
	c.Hidden, c.Vocab, c.FFN, c.Experts.FFN, c.Context = 256, 600, 128, 128, 256
	synth(t, c, gguf.Type(qtype.MXFP4), 1)
}

func TestCutRefuses(t *testing.T) {
	for _, c := range []struct {
		preset          string
		layers, experts int
		want            string
	}{
		{"llama-160m", 13, 0, "give 1 to 12"}, {"llama-160m", -1, 0, "layers"}, {"llama-160m", 2, 4, "has none"},
		{"gpt-oss-20b", 2, 3, "give 4 (used per token)"}, {"gpt-oss-20b", 2, 33, "to 32"},
		{"gpt-oss-20b", 0, -1, "to 32"},
	} {
		whole, err := Preset(c.preset)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Cut(whole, c.layers, c.experts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %d layers and %d experts: %v", c.preset, c.layers, c.experts, err)
		}
	}
}
