package main

import (
	"fmt"

	"sandwich/runtime/model"
)

// purpose is what a verb needs a model for.
type purpose uint8

// Purposes.
const (
	forText   purpose = iota // it generates
	forVector                // it makes one vector, or scores, of a text
	forBoth                  // the verb has a use for either
)

// suits refuses a model by what it makes of texts, and names the verbs that take it.
func (s *session) suits(p purpose) error {
	c, err := model.ConfigOf(s.file)
	if err != nil {
		return err
	}
	s.pooling, s.scores = c.Pooling, c.Scoring.Count > 0
	switch pooled := c.Pooling != model.NoPooling; {
	case p == forText && pooled:
		return fmt.Errorf("%s %s and generates no text: use it with `sandwich embed` or `sandwich serve`", s.name,
			s.makes())
	case p == forVector && !pooled:
		return fmt.Errorf("%s generates text and its file names no pooling (%s.pooling_type): give --model an "+
			"embedding "+
			"or a rerank model", s.name, c.Arch)
	}
	return nil
}

// makes says what a pooled model makes.
func (s *session) makes() string {
	if s.scores {
		return "scores texts"
	}
	return "makes embeddings"
}
