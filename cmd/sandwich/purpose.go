package main

import (
	"fmt"

	"sandwich/runtime/model"
	"sandwich/runtime/session"
)

// purpose names the use that a verb makes of a model.
type purpose uint8

// Purposes.
const (
	forText   purpose = iota // it generates
	forVector                // it makes one vector, or scores, of a text
	forBoth                  // the verb has a use for either
)

// suits refuses a model by what it makes of texts, and names the verbs that take it.
func (p purpose) suits(s *session.Session) error {
	switch {
	case p == forText && s.Pooling != model.NoPooling:
		return fmt.Errorf("%s %s and generates no text: use it with `sandwich embed` or `sandwich serve`", s.Name,
			makes(s.Scores))
	case p == forVector && s.Pooling == model.NoPooling:
		return fmt.Errorf("%s generates text and its file names no pooling (%s.pooling_type): give --model an "+
			"embedding or a rerank model", s.Name, s.Shape.Arch)
	}
	return nil
}

// makes says what a pooled model makes.
func makes(scores bool) string {
	if scores {
		return "scores texts"
	}
	return "makes embeddings"
}
