package answer

import (
	"context"
	"fmt"

	"sandwich/runtime/api"
)

// Embed returns the vectors or scores of texts.
func (g *Generator) Embed(ctx context.Context, r api.Embedding) (v api.Vectors, err error) {
	if err := g.engine.CheckEmbedding(&r); err != nil {
		return v, g.withModel(err)
	}
	if r.Prompts, err = g.text.Prompts(ctx, &r); err != nil {
		return v, err
	}
	return g.engine.Embed(ctx, r)
}

// generates returns an error for models that do not generate text; it names the endpoint to use.
func (g *Generator) generates() error {
	switch m := g.engine.Runner().Model; {
	case !m.Pooled():
		return nil
	case m.Scores:
		return &api.InvalidError{Model: true, Message: fmt.Sprintf("the model %s scores texts and does not generate "+
			"text: use /v1/rerank", g.model.ID)}
	}
	return &api.InvalidError{Model: true, Message: fmt.Sprintf("the model %s computes embeddings and does not "+
		"generate text: use /v1/embeddings", g.model.ID)}
}

// withModel adds the name of the model to an error that names no field.
func (g *Generator) withModel(err error) error {
	if invalid, ok := err.(*api.InvalidError); ok && invalid.Param == "" {
		return &api.InvalidError{Model: true, Message: fmt.Sprintf("%s: %s", g.model.ID, invalid.Message)}
	}
	return err
}
