package modelshape_test

import (
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model/modelfile"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/synth"
)

// TestOutlineIsTheModel checks that an outline has the same ops and weights as the model of a file.
func TestOutlineIsTheModel(t *testing.T) {
	for _, arch := range synth.Families() {
		file, err := gguf.Parse(write(t, synth.Small(arch), gguf.F32, 1))
		if err != nil {
			t.Fatal(err)
		}
		m, err := modelfile.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		shape, err := modelshape.Of(file)
		if err != nil {
			t.Fatal(err)
		}
		o, err := modelshape.Outline(shape)
		if err != nil || len(o.Ops) != len(m.Ops) {
			t.Fatalf("%s: the model has %d ops and its outline others: %v", arch, len(m.Ops), err)
		}
		for i, op := range o.Ops {
			want := m.Ops[i]
			if op.Kind != want.Kind || op.Name != want.Name || op.Layer != want.Layer || op.Heads != want.Heads ||
				op.KVLayer != want.KVLayer || op.Attn.Window != want.Attn.Window || op.Attn.Store != want.Attn.Store {
				t.Errorf("%s: op %d is %s, the model's is %s", arch, i, op.Name, want.Name)
			}
		}
		for i, w := range o.Weights {
			want := m.Weights[i]
			if w.Name != want.Name || w.Role != want.Role || w.N != want.N || w.K != want.K || w.Stack != want.Stack {
				t.Errorf("%s: weight %d is %+v, the model's is %+v", arch, i, w, want)
			}
		}
	}
	c, _ := synth.Tiny("gpt-oss")
	shape, err := synth.Shape(c, synth.Uniform(gguf.F32))
	if err != nil {
		t.Fatal(err)
	}
	shape.Values = nil
	if _, err := modelshape.Outline(shape); err == nil || !strings.Contains(err.Error(), "sandwich tune") {
		t.Errorf("a plan without windows: %v", err)
	}
	if _, err := modelshape.Outline(plans.ModelShape{Arch: "gpt-j", Layers: 1}); err == nil {
		t.Error("gpt-j has an outline")
	}
}
