package profiles

import (
	"strings"

	"sandwich/microkernel"
)

// portPrefix begins the types of ceilings that say how many instructions of some classes one core
// makes in a second: "ports-dot", or in turn "ports-logic+logic+dot".
const portPrefix = "ports-"

// PortType is the type of a ceiling of instructions of the classes in turn.
func PortType(mix []microkernel.InstructionClass) string {
	names := make([]string, len(mix))
	for i, c := range mix {
		names[i] = c.String()
	}
	return portPrefix + strings.Join(names, "+")
}

// PortMix is the inverse of PortType; nothing for ceilings of other types, and where this build
// does not know a class.
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
