package synth

import (
	"fmt"
	"strings"

	"sandwich/microkernel/qtype"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/tensors"
)

// FileType determines the tensor type of each matrix of a synthetic file: one type for all, or a
// mix of two by the rules of llama-quantize.
type FileType struct {
	// more is the type of the head, and in some layers of attn_v and ffn_down; without a mix it
	// equals base.
	base, more gguf.Type
	number     uint32 // general.file_type
	name       string
	experts    bool // only experts have type base, all other matrices have type more
}

// mixes lists the supported mixes of llama-quantize.
var mixes = []FileType{
	{gguf.Q4_K, gguf.Q6_K, 15, "q4_K_M", false},
	{gguf.Q5_K, gguf.Q6_K, 17, "q5_K_M", false},
	{gguf.Type(qtype.MXFP4), gguf.Q8_0, 38, "mxfp4_moe", true},
}

// Uniform returns a file type with all matrices of type t.
func Uniform(t gguf.Type) FileType { return FileType{t, t, t.Desc().FileType, t.String(), false} }

// Mix returns a file type in which the head, and attn_v and ffn_down of some layers, have type
// more, so that products of the same input have weights of different types.
func Mix(base, more gguf.Type) FileType {
	return FileType{base, more, base.Desc().FileType, base.String() + "+" + more.String(),
		false}
}

// ParseFileType returns the file type with the name of a tensor type or of a mix; case is ignored.
func ParseFileType(s string) (FileType, error) {
	var names []string
	for _, f := range mixes {
		if strings.EqualFold(s, f.name) {
			return f, nil
		}
		names = append(names, f.name)
	}
	t, err := gguf.ParseType(s)
	if err != nil {
		return FileType{}, fmt.Errorf("%w, or one of the mixes %s", err, strings.Join(names, ", "))
	}
	return Uniform(t), nil
}

// String returns the name that ParseFileType accepts.
func (f FileType) String() string { return f.name }

// of returns the type of one tensor of a model by the rules of llama-quantize. In a mix the head
// has the larger type, and so have attn_v and ffn_down in the first and last eighth of the layers
// and in every third layer in between. In mxfp4_moe all tensors except experts have it, as in the
// published files of gpt-oss.
func (f FileType) of(s tensors.Spec, c model.Config) gguf.Type {
	t := f.base
	if f.experts {
		if len(s.Dims) < 3 {
			t = f.more
		}
		return s.TypeFor(t)
	}
	switch s.Role {
	case "head":
		t = f.more
	case "embed":
		if c.TiedHead() { // the embedding is the head
			t = f.more
		}
	case "v", "down":
		if largerIn(s.Layer, c.Layers) {
			t = f.more
		}
	}
	return s.TypeFor(t)
}

// largerIn reports whether the sensitive matrices of a layer have the larger type of a mix.
func largerIn(layer, layers int) bool {
	eighth := layers / 8
	return layer < eighth || layer >= 7*layers/8 || (layer-eighth)%3 == 2
}
