package modelflags

import (
	"fmt"

	"sandwich/runtime/model"
	"sandwich/runtime/session"
)

// purpose is the use that a verb makes of a model.
type purpose uint8

// Purposes.
const (
	ForText   purpose = iota // generate text
	ForVector                // compute embeddings or scores
	ForBoth                  // either
)

// suits rejects a model that the verb cannot use, and names the verbs that accept it.
func (p purpose) suits(s *session.Session) error {
	switch {
	case p == ForText && s.Pooling != model.NoPooling:
		return fmt.Errorf("%s %s and generates no text; use it with `sandwich embed` or `sandwich serve`", s.Name,
			makes(s.Scores))
	case p == ForVector && s.Pooling == model.NoPooling:
		return fmt.Errorf("%s generates text, since its file has no %s.pooling_type; give --model an "+
			"embedding or a rerank model", s.Name, s.Shape.Arch)
	}
	return nil
}

// makes names the output of a pooled model.
func makes(scores bool) string {
	if scores {
		return "scores texts"
	}
	return "computes embeddings"
}
