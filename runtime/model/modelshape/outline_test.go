package modelshape_test

import (
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/modelfile"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/synth"
)

// TestOutlineIsTheModel checks that an outline has the same ops and weights as the model of a file.
func TestOutlineIsTheModel(t *testing.T) {
	for _, family := range synth.Families() {
		checkFile(t, synth.Small(family))
	}
	convolutions, err := synth.Cut(synth.Small("lfm2"), 2, 0) // no layer has attention
	if err != nil {
		t.Fatal(err)
	}
	checkFile(t, convolutions)
}

// checkFile compares the model of a synthetic file with the outline of its shape.
func checkFile(t *testing.T, c model.Config) {
	t.Helper()
	file, err := gguf.Parse(write(t, c, gguf.F32, 1))
	if err != nil {
		t.Fatal(err)
	}
	m, err := modelfile.Load(file)
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	shape, err := modelshape.Of(file)
	if err != nil {
		t.Fatal(err)
	}
	checkOutline(t, c.Name, m, shape)
}

// TestOutlineOfFewLayers checks the outlines of models of one and two layers.
func TestOutlineOfFewLayers(t *testing.T) {
	for _, family := range synth.Families() {
		for _, layers := range []int{1, 2} {
			c, err := synth.Cut(synth.Small(family), layers, 0)
			if err != nil {
				continue // the family needs more layers
			}
			m, err := arch.Model(c)
			if err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			shape, err := synth.Shape(c, synth.Uniform(gguf.F32))
			if err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			checkOutline(t, family+" "+c.Name, m, shape)
		}
	}
}

// checkOutline compares a model with the outline of its shape.
func checkOutline(t *testing.T, name string, m *model.Model, shape plans.ModelShape) {
	t.Helper()
	o, err := modelshape.Outline(shape)
	if err != nil || len(o.Ops) != len(m.Ops) {
		t.Errorf("%s: the model has %d ops and its outline others: %v", name, len(m.Ops), err)
		return
	}
	for i, op := range o.Ops {
		want := m.Ops[i]
		if op.Kind != want.Kind || op.Name != want.Name || op.Layer != want.Layer || op.Heads != want.Heads ||
			op.KVLayer != want.KVLayer || op.Attn.Window != want.Attn.Window || op.Attn.Store != want.Attn.Store {
			t.Errorf("%s: op %d is %s, the model's is %s", name, i, op.Name, want.Name)
		}
	}
	for i, w := range o.Weights {
		want := m.Weights[i]
		if w.Name != want.Name || w.Role != want.Role || w.N != want.N || w.K != want.K || w.Stack != want.Stack {
			t.Errorf("%s: weight %d is %+v, the model's is %+v", name, i, w, want)
		}
	}
}

// TestOutlineRefuses checks the errors for a plan without the values of its family and for an
// unknown architecture.
func TestOutlineRefuses(t *testing.T) {
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
