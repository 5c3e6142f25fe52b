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

// AttentionType returns the ceiling type of attention with a dot product on prompts.
func AttentionType(d microkernel.AttentionDot) string { return "attend-" + d.String() }

// AttentionStepType returns the ceiling type of attention with one query head of one token, the
// smallest job of generation.
func AttentionStepType(d microkernel.AttentionDot) string { return AttentionType(d) + "-step" }

// AttentionCache returns the cache type with which the attention of a dot product is measured: f16,
// or q8_0 for integer dot products, which read no other type.
func AttentionCache(d microkernel.AttentionDot) microkernel.KVType {
	if d.Reads(microkernel.KVF16) != nil {
		return microkernel.KVQ8
	}
	return microkernel.KVF16
}
