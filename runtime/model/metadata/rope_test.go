package metadata

import (
	"strings"
	"testing"

	"sandwich/runtime/model"
)

// TestScaling checks that a scaling factor without a rule, or under its first name, is linear, and
// that one with the rule "none" applies to layers with a window only, both as in llama.cpp.
func TestScaling(t *testing.T) {
	for _, n := range []numbers{{"llama.rope.scaling.factor": {4}}, {"llama.rope.scale_linear": {4}},
		{"llama.rope.scaling.factor": {0}, "llama.rope.scale_linear": {4}}} {
		m, c := Reader{source: n, arch: "llama"}, model.Config{Dims: model.Dims{HeadDim: 64, Context: 128}}
		if m.rope(&c); c.RopeScale != 0.25 || len(m.errs) > 0 {
			t.Errorf("%v: positions are multiplied by %v (%v)", n, c.RopeScale, m.errs)
		}
	}
	for _, family := range []string{"gemma2", "gpt-oss", "llama4"} {
		m := Reader{source: unscaled{numbers{family + ".rope.scaling.factor": {4}}}, arch: family}
		c := model.Config{Arch: family, RopeBase: 1e4, Dims: model.Dims{HeadDim: 32, Context: 128}}
		m.rope(&c)
		m.Near(&c)
		b := model.Builder{Config: c}
		if far := b.Rope(model.Rope{}); len(m.errs) > 0 || far.Scale != 1 || b.Near(far).Scale != 0.25 {
			t.Errorf("%s, rule none: scale %v, with a window %v", family, far.Scale, b.Near(far).Scale)
		}
	}
}

// unscaled is a source with the scaling rule none.
type unscaled struct{ numbers }

func (u unscaled) String(key string) (string, bool) {
	return "none", strings.HasSuffix(key, ".rope.scaling.type")
}
