package speculate

import (
	"fmt"
	"strconv"
	"strings"
)

// maxDepth bounds the depth in a mode.
const maxDepth = 64

// Auto selects the best drafter of a model. Today that is prompt lookup for every model.
const Auto = "auto"

// Modes lists the names that New accepts.
var Modes = []string{Auto, "off", "ngram"}

// New returns the drafter of a mode, nil for "off", and the number of drafted tokens to verify for
// each sequence: the number after "=", as in "ngram=4", or 0 if the controller chooses it from
// measured times. An error names an unknown mode.
func New(mode string) (d Drafter, depth int, err error) {
	name, number, fixed := strings.Cut(mode, "=")
	if fixed {
		if depth, err = strconv.Atoi(number); err != nil || depth < 1 || depth > maxDepth || name == "off" {
			return nil, 0, fmt.Errorf("unknown mode %.20q; use a drafter and a number of tokens "+
				"from 1 to %d, such as ngram=4", mode, maxDepth)
		}
	}
	switch name {
	case Auto, "ngram":
		return NewNGram(maxBytes), depth, nil
	case "off":
		return nil, 0, nil
	}
	return nil, 0, fmt.Errorf("unknown mode %.20q; choose one of %s", mode, strings.Join(Modes, ", "))
}
