package rig

import (
	"bytes"
	"context"
	"fmt"

	"sandwich/plans"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/synth"
	"sandwich/tuner/measure/kernels"
)

// RandomModel returns random weights of a model's shapes, in memory. If the model has more than
// limit bytes, it is reduced to as many layers as fit; layers are alike, so that arms compare as on
// the whole model.
func RandomModel(ctx context.Context, c model.Config, t synth.FileType, limit int64, seed uint64) (f *gguf.File,
	part string, err error) {
	shape, err := synth.Shape(c, t)
	if err != nil {
		return nil, "", err
	}
	layers := c.Layers
	for c.Layers > 1 && ModelBytes(shape)*int64(c.Layers)/int64(layers) > limit {
		c.Layers--
	}
	if c.Layers < layers {
		part = fmt.Sprintf("%d of %d layers", c.Layers, layers)
	}
	var data bytes.Buffer
	if err := synth.Write(ctx, gguf.NewWriter(&data), c, t, seed, nil); err != nil {
		return nil, "", fmt.Errorf("making random weights: %w", err)
	}
	f, err = gguf.Parse(data.Bytes())
	return f, part, err
}

// ModelBytes returns the size of a model's packed weights in bytes. Types without kernels count as
// 0, embeddings only as heads.
func ModelBytes(s plans.ModelShape) (total int64) {
	for _, w := range s.Weights {
		if w.Role != plans.RoleEmbed {
			total += int64(w.Count) * int64(kernels.PackedBytes(w.Key()))
		}
	}
	return total
}
