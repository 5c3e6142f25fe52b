package model

import (
	"fmt"
	"slices"

	"sandwich/plans"
	"sandwich/runtime/gguf"
)

// ShapeOf returns the shape of the model in f: sizes from the metadata, weight shapes and types
// from the tensor entries. It reads no weights, and accepts all types that gguf knows, also those
// that Load refuses. It returns an error for a tensor that is missing or has another shape than the
// metadata require.
func ShapeOf(f *gguf.File) (plans.ModelShape, error) {
	c, err := ConfigOf(f)
	if err != nil {
		return plans.ModelShape{}, err
	}
	typeOf := func(s spec) (gguf.Type, error) {
		t, ok := f.Tensor(s.name)
		if !ok && s.optional {
			return gguf.F32, nil
		}
		if !ok {
			return 0, fmt.Errorf("the file has no tensor %s: it is not a complete %s model", s.name, c.Arch)
		}
		if !sameDims(t.Dims, s.dims) {
			return 0, fmt.Errorf("tensor %s has shape %v, but the model's sizes require %v", s.name, t.Dims, s.dims)
		}
		return t.Type, nil
	}
	return c.shape(typeOf)
}

// Shape returns the shape of the file that Synth writes for the configuration and a file type.
func (c Config) Shape(t FileType) (plans.ModelShape, error) {
	if err := checkConfig(c); err != nil {
		return plans.ModelShape{}, err
	}
	return c.shape(func(s spec) (gguf.Type, error) { return t.of(s, c), nil })
}

// shape returns the shape with the types that typeOf returns for matrices. It calls typeOf for
// vectors as well, so that typeOf can report missing ones.
func (c Config) shape(typeOf func(spec) (gguf.Type, error)) (plans.ModelShape, error) {
	shape := plans.ModelShape{
		Arch: c.Arch, Name: c.Name, Hidden: c.Hidden, Layers: c.Layers, Heads: c.Heads, KVHeads: c.KVHeads,
		HeadDim: c.HeadDim, FFN: c.FFN,
		Vocab: c.Vocab, Context: c.Context, Tied: c.tied(), Experts: c.Experts.Count, ExpertsUsed: c.Experts.Used,
		ExpertFFN: c.Experts.FFN, Values: familyValues(c),
	}
	add := func(w plans.WeightShape) {
		at := slices.IndexFunc(shape.Weights, func(o plans.WeightShape) bool {
			return o.Role == w.Role &&
				o.Key() == w.Key()
		})
		if at < 0 {
			shape.Weights = append(shape.Weights, w)
			return
		}
		shape.Weights[at].Count += w.Count
	}
	for _, s := range c.tensors() {
		t, err := typeOf(s)
		if err != nil {
			return plans.ModelShape{}, err
		}
		if s.role == "" {
			continue
		}
		for _, p := range s.parts {
			w := plans.WeightShape{Role: p.role, N: p.n, K: s.dims[0], Type: t.String(), Count: s.rows() / s.dims[1]}
			add(w)
			if s.name == embedTensor && c.tied() {
				w.Role = "head"
				add(w)
			}
		}
	}
	return shape, nil
}
