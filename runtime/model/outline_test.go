package model

import (
	"testing"

	"sandwich/plans"
	"sandwich/runtime/gguf"
)

// TestOutlineIsTheModel: the ops without a file are those that a file gives, one by one.
func TestOutlineIsTheModel(t *testing.T) {
	for _, arch := range []string{"llama", "qwen2", "qwen3", "qwen3moe"} {
		file, err := gguf.Parse(synth(t, small(arch), gguf.F32, 1))
		if err != nil {
			t.Fatal(err)
		}
		m, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		shape, err := ShapeOf(file)
		if err != nil {
			t.Fatal(err)
		}
		o, err := Outline(shape)
		if err != nil || len(o.Ops) != len(m.Ops) {
			t.Fatalf("%s: the model has %d ops and its outline others: %v", arch, len(m.Ops), err)
		}
		for i, op := range o.Ops {
			if want := m.Ops[i]; op.Kind != want.Kind || op.Name != want.Name || op.Layer != want.Layer {
				t.Errorf("%s: op %d is %s, the model's is %s", arch, i, op.Name, want.Name)
			}
		}
	}
	if _, err := Outline(plans.ModelShape{Arch: "gpt-j", Layers: 1}); err == nil {
		t.Error("gpt-j has an outline")
	}
}
