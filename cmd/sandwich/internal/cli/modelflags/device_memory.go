package modelflags

import (
	"sandwich/runtime/device"
	"sandwich/runtime/mem"
	"sandwich/runtime/offload/unified"
	"sandwich/runtime/phase"
	"sandwich/runtime/session"
)

// memoryOf decides whether weights and KV cache of a session exist once for the cores and a device
// that runs phases; nil phases: those that the engine will choose.
func memoryOf(s *session.Session, dev device.Device, phases []phase.Phase) *unified.Memory {
	l := unified.Load{Weights: s.File.Size(), Available: -1}
	onCores := phase.Count - len(phases)
	if onCores > 0 {
		l.CoresRead = l.Weights * int64(reference.Output)
	}
	if onCores == 1 || phases == nil {
		const keysAndValues, halfBytes = 2, 2
		position := int64(keysAndValues * halfBytes * s.Shape.KVHeads * s.Shape.HeadDim * s.Shape.Layers)
		l.Copied = position * int64(reference.Prompt)
	}
	if free := mem.Available(); free >= 0 {
		l.Available = max(0, free-l.Weights)
	}
	return unified.New(dev, l, nil)
}
