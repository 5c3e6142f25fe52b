package answer

import (
	"context"
	"fmt"

	"sandwich/runtime/api"
)

// Embed reads texts to their end.
func (g *Generator) Embed(ctx context.Context, r api.Embedding) (v api.Vectors, err error) {
	if err := g.engine.Reads(&r); err != nil {
		return v, g.named(err)
	}
	if r.Prompts, err = g.engine.Prompts(ctx, &r); err != nil {
		return v, err
	}
	return g.engine.Embed(ctx, r)
}

// generates refuses requests for text of a model that makes none, and names the endpoint that it is
// served for.
func (g *Generator) generates() error {
	switch m := g.engine.Runner().Model; {
	case !m.Pooled():
		return nil
	case m.Scores:
		return &api.InvalidError{Model: true, Message: fmt.Sprintf("the model %s scores texts and generates none: use "+
			"/v1/rerank", g.model.ID)}
	}
	return &api.InvalidError{Model: true, Message: fmt.Sprintf("the model %s makes embeddings and generates no text: "+
		"use /v1/embeddings", g.model.ID)}
}

// named says which model it is that refuses.
func (g *Generator) named(err error) error {
	if invalid, ok := err.(*api.InvalidError); ok && invalid.Param == "" {
		return &api.InvalidError{Model: true, Message: fmt.Sprintf("%s: %s", g.model.ID, invalid.Message)}
	}
	return err
}
