package profiles

import (
	"strings"

	"sandwich/microkernel"
)

// portPrefix is the prefix of ceiling types for the throughput of instruction classes on one core:
// "ports-dot", or "ports-logic+logic+dot" for an interleaved mix.
const portPrefix = "ports-"

// PortType returns the ceiling type of an interleaved mix of instruction classes.
func PortType(mix []microkernel.InstructionClass) string {
	names := make([]string, len(mix))
	for i, c := range mix {
		names[i] = c.String()
	}
	return portPrefix + strings.Join(names, "+")
}

// PortMix returns the instruction classes of a type made by PortType. It returns nil for other
// types and unknown classes.
func (c *Ceiling) PortMix() (mix []microkernel.InstructionClass) {
	names, ok := strings.CutPrefix(c.Type, portPrefix)
	if !ok {
		return nil
	}
	for name := range strings.SplitSeq(names, "+") {
		class, ok := microkernel.ParseInstructionClass(name)
		if !ok {
			return nil
		}
		mix = append(mix, class)
	}
	return mix
}
