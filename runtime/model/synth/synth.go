// Package synth writes models with random weights: published sizes (Preset) and a small model per
// family (Tiny).
package synth

import (
	"context"
	"fmt"
	"io"

	"sandwich/profiles/retention"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/metadata"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/tensors"
)

// WriteFile writes a GGUF file with random weights for c to path, as Write does. The file appears
// when it is complete.
func WriteFile(ctx context.Context, path string, c model.Config, t FileType, seed uint64, progress func(done,
	total int64)) error {
	return retention.WriteTo(path, func(w io.Writer) error {
		return Write(ctx, gguf.NewWriter(w), c, t, seed, progress)
	})
}

// Write writes a GGUF file with random weights for c to a new writer and closes it. The bytes
// depend only on configuration, type and seed. It uses some megabytes per core for models of any
// size, and all cores. progress, if not nil, is called from one goroutine with the tensor bytes
// written so far and in total. Matrices have the types of t, except that routers have float32, and
// rows that are not whole blocks have a simpler type; vectors have float32.
func Write(ctx context.Context, w *gguf.Writer, c model.Config, t FileType, seed uint64, progress func(done,
	total int64)) error {
	return WriteTail(ctx, w, c, t, seed, Tail{From: c.Layers}, progress)
}

// WriteTail is Write for a model whose last layers add little to the residual stream.
func WriteTail(ctx context.Context, w *gguf.Writer, c model.Config, t FileType, seed uint64, tail Tail,
	progress func(done, total int64)) error {
	if err := arch.Check(c); err != nil {
		return err
	}
	if elems, _ := t.base.Block(); elems == 0 {
		return fmt.Errorf("tensor type %s is %w", t, model.ErrUnsupported)
	}
	m, err := arch.Model(c)
	if err != nil {
		return err
	}
	metadata.Write(w, c, t.number, model.HasLayerNorm(m))
	metadata.WritePooling(w, c)
	if err := writeVocabulary(w, c); err != nil {
		return err
	}
	specs := modelshape.Tensors(c)
	tail.scale(specs)
	var total int64
	for _, s := range specs {
		typ := t.of(s, c)
		w.AddTensor(s.Name, typ, s.Dims...)
		total += int64(typ.RowBytes(s.Dims[0])) * int64(s.Rows())
	}
	if progress == nil {
		progress = func(int64, int64) {}
	}
	if err := writeTensors(ctx, w, chunksOf(specs, func(s tensors.Spec) gguf.Type { return t.of(s, c) }, seed),
		func(done int64) { progress(done, total) }); err != nil {
		return err
	}
	return w.Close()
}
