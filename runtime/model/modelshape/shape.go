// Package modelshape converts between models and the shapes that plans store.
package modelshape

import (
	"fmt"
	"slices"

	"sandwich/plans"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/metadata"
	"sandwich/runtime/model/tensors"
)

// readHead sets pooling, scores and projections by the matrices of a shape.
func readHead(c *model.Config, s plans.ModelShape) {
	c.Pooling = model.LastPooling
	for _, w := range s.Weights {
		switch w.Role {
		case "head":
			c.Pooling = model.NoPooling
		case "cls":
			c.Scoring.Dense = true
		case "score":
			c.Scoring.Count, c.Scoring.Share = w.N, !c.Bidirectional
		case model.DenseNames[0], model.DenseNames[1]:
			c.Dense = append(c.Dense, w.N)
		}
	}
}

// Of returns the shape of the model in f: sizes from the metadata, weight shapes and types
// from the tensor entries. It reads no weights, and accepts all types that gguf knows, also those
// that Load refuses. It returns an error for a tensor that is missing or has another shape than the
// metadata require.
func Of(f *gguf.File) (plans.ModelShape, error) {
	c, err := arch.ConfigOf(f)
	if err != nil {
		return plans.ModelShape{}, err
	}
	typeOf := func(s tensors.Spec) (gguf.Type, error) {
		t, ok := f.Tensor(s.Name)
		if !ok && s.Optional {
			return gguf.F32, nil
		}
		if !ok {
			return 0, fmt.Errorf("the file has no tensor %s: it is not a complete %s model; "+
				"convert or download it again", s.Name, c.Arch)
		}
		if !tensors.SameDims(t.Dims, s.Dims) {
			return 0, fmt.Errorf("tensor %s has shape %v, but the model's sizes require %v; "+
				"convert or download it again", s.Name, t.Dims, s.Dims)
		}
		return t.Type, nil
	}
	return Make(c, typeOf)
}

// Make returns the shape with the types that typeOf returns for matrices. It calls typeOf for
// vectors as well, so that typeOf can report missing ones.
func Make(c model.Config, typeOf func(tensors.Spec) (gguf.Type, error)) (plans.ModelShape, error) {
	shape := plans.ModelShape{
		Arch: c.Arch, Name: c.Name, Hidden: c.Hidden, Layers: c.Layers, Heads: c.Heads, KVHeads: c.KVHeads,
		HeadDim: c.HeadDim, FFN: c.FFN,
		Vocab: c.Vocab, Context: c.Context, Tied: c.TiedHead(), Experts: c.Experts.Count, ExpertsUsed: c.Experts.Used,
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
	for _, s := range Tensors(c) {
		t, err := typeOf(s)
		if err != nil {
			return plans.ModelShape{}, err
		}
		if s.Role == "" {
			continue
		}
		for _, p := range s.Parts {
			w := plans.WeightShape{Role: p.Role, N: p.N, K: s.Dims[0], Type: t.String(), Count: s.Rows() / s.Dims[1]}
			add(w)
			if s.Name == model.EmbedTensor && c.TiedHead() {
				w.Role = "head"
				add(w)
			}
		}
	}
	return shape, nil
}

// familyValues returns the numbers that the family of a configuration reads in addition to the
// common sizes. Outline needs them to write the same ops.
func familyValues(c model.Config) map[string][]float64 {
	a, err := arch.Find(c.Arch)
	if err != nil || a.Read == nil {
		return nil
	}
	m, err := arch.Model(c)
	if err != nil {
		return nil
	}
	tensors := map[string]bool{}
	for _, s := range Tensors(c) {
		tensors[s.Name] = true
	}
	return metadata.Values(c, model.HasLayerNorm(m), tensors, a.Read)
}

// Outline returns the model of a plan's shape without weights, for estimates without a file. It
// does not check the sizes. It fails for an unknown architecture, and for a shape without the
// values that its family needs.
func Outline(s plans.ModelShape) (*model.Model, error) {
	c := model.Config{Arch: s.Arch, Name: s.Name, Tied: s.Tied,
		Dims: model.Dims{Hidden: s.Hidden, Layers: s.Layers, Heads: s.Heads, KVHeads: s.KVHeads, HeadDim: s.HeadDim,
			FFN: s.FFN, Vocab: s.Vocab, Context: s.Context},
		Experts: model.Experts{Count: s.Experts, Used: s.ExpertsUsed, FFN: s.ExpertFFN}}
	a, err := arch.Find(c.Arch)
	if err != nil {
		return nil, err
	}
	if a.Read != nil {
		if err := metadata.ReadValues(&c, s.Values, a.Read); err != nil {
			return nil, err
		}
	}
	readHead(&c, s)
	return arch.Model(c)
}

// Tensors returns the tensors of a synthetic file of the configuration, in file order.
func Tensors(c model.Config) []tensors.Spec {
	m, err := arch.Model(c)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(tensors.List(m), func(s tensors.Spec) bool {
		return s.Optional && s.Fixed == nil && !s.Expected
	})
}
