package model

import (
	"fmt"
	"strings"

	"sandwich/microkernel/qtype"
	"sandwich/runtime/gguf"
)

// FileType says which tensor type each matrix of a synthetic file takes: one for all, or a mix of
// two as llama-quantize makes them.
type FileType struct {
	// more is what the head, and in some layers attn_v and ffn_down, take; equal to base without a
	// mix
	base, more gguf.Type
	number     uint32 // general.file_type
	name       string
	experts    bool // base is of experts only, everything else takes more
}

// mixes are the files that llama-quantize names after two sizes.
var mixes = []FileType{
	{gguf.Q4_K, gguf.Q6_K, 15, "q4_K_M", false},
	{gguf.Q5_K, gguf.Q6_K, 17, "q5_K_M", false},
	{gguf.Type(qtype.MXFP4), gguf.Q8_0, 38, "mxfp4_moe", true},
}

// Uniform is a file whose matrices are all of type t.
func Uniform(t gguf.Type) FileType { return FileType{t, t, t.Desc().FileType, t.String(), false} }

// Mix is a file of two types: the head, and attn_v and ffn_down of some layers, are of type more,
// so that products which share their input have unlike weights.
func Mix(base, more gguf.Type) FileType {
	return FileType{base, more, base.Desc().FileType, base.String() + "+" + more.String(),
		false}
}

// ParseFileType reads the name of a tensor type or of a mix; case is ignored.
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

// String is the name that ParseFileType reads.
func (f FileType) String() string { return f.name }

// of is the type of one tensor of a model with c's sizes, by the rules of llama-quantize: in a mix
// the head takes the larger type, and so do attn_v and ffn_down in the first and last eighth of the
// layers and in every third between. Of mxfp4_moe all that is no stack of experts takes it, as in
// the files that gpt-oss is published in.
func (f FileType) of(s spec, c Config) gguf.Type {
	t := f.base
	if f.experts {
		if len(s.dims) < 3 {
			t = f.more
		}
		return s.typeFor(t)
	}
	switch s.role {
	case "head":
		t = f.more
	case "embed":
		if c.tied() { // it is the head too
			t = f.more
		}
	case "v", "down":
		if largerIn(s.layer, c.Layers) {
			t = f.more
		}
	}
	return s.typeFor(t)
}

// largerIn says whether the sensitive matrices of a layer take the larger type of a mix.
func largerIn(layer, layers int) bool {
	eighth := layers / 8
	return layer < eighth || layer >= 7*layers/8 || (layer-eighth)%3 == 2
}
