package speculate

import (
	"fmt"
	"strings"
)

// Auto selects the best drafter of a model. Today that is prompt lookup for every model.
const Auto = "auto"

// Modes lists the names that New accepts.
var Modes = []string{Auto, "off", "ngram"}

// New returns the drafter of a mode, nil for "off", and an error for a name that is not in Modes.
func New(mode string) (Drafter, error) {
	switch mode {
	case Auto, "ngram":
		return NewNGram(maxBytes), nil
	case "off":
		return nil, nil
	}
	return nil, fmt.Errorf("unknown mode %.20q; choose one of %s", mode, strings.Join(Modes, ", "))
}
