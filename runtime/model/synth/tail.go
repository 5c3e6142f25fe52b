package synth

import (
	"slices"
	"strings"

	"sandwich/runtime/model/tensors"
)

// Tail scales what the layers from From on add to the residual stream. The first From layers of the
// model, written with the same seed, then predict its tokens about as well as Scale is small.
type Tail struct {
	From  int
	Scale float32
}

// added are the tensors whose product or norm is added to the residual stream.
var added = []string{"attn_output", "ffn_down", "ffn_down_exps", "ffn_down_shexp", "ssm_out", "shortconv.out_proj",
	"post_attention_norm", "post_ffw_norm"}

// scale scales the random values of the tail.
func (t Tail) scale(specs []tensors.Spec) {
	for i := range specs {
		s := &specs[i]
		if s.Layer < t.From || s.Layer < 0 {
			continue
		}
		_, name, _ := strings.Cut(strings.TrimPrefix(s.Name, "blk."), ".")
		name = strings.TrimSuffix(strings.TrimSuffix(name, ".weight"), ".bias")
		if slices.Contains(added, name) {
			s.Mean, s.Std = s.Mean*t.Scale, s.Std*t.Scale
		}
	}
}
