// Package phase names the two phases of inference.
package phase

import "fmt"

// Phase is a phase of inference. Its values index arrays of length Count.
type Phase uint8

const (
	Prefill Phase = iota // reads the tokens of a prompt, many rows of one sequence at a time
	Decode               // computes the next token of each of several sequences
)

// Count is the number of phases.
const Count = 2

// All lists the phases in the order of their values.
var All = [Count]Phase{Prefill, Decode}

var names = [Count]string{Prefill: "prefill", Decode: "decode"}

// String returns the name of the phase as plan files and flags spell it.
func (p Phase) String() string {
	if int(p) >= Count {
		return fmt.Sprintf("phase %d", uint8(p))
	}
	return names[p]
}

// Parse returns the phase of a name that String returns. It refuses every other text.
func Parse(name string) (Phase, error) {
	for _, p := range All {
		if names[p] == name {
			return p, nil
		}
	}
	return 0, fmt.Errorf("unknown phase %.40q; use %s or %s", name, Prefill, Decode)
}
