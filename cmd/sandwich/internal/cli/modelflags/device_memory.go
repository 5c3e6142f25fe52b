package modelflags

import (
	"sandwich/cmd/sandwich/internal/deviceforecast"
	"sandwich/plans"
	"sandwich/runtime/device"
	"sandwich/runtime/mem"
	"sandwich/runtime/offload/unified"
	"sandwich/runtime/phase"
	"sandwich/runtime/session"
)

// Copies reports whether a device will hold a copy of the weights of a model in addition to that of
// the cores.
func Copies(dev device.Device, s *session.Subject) bool {
	weights := int64(0)
	for _, w := range s.Shape.Weights {
		weights += int64(w.N) * int64(w.K) * int64(w.Count) // about a byte each
	}
	return !memoryOf(dev, &s.Shape, weights, nil).Shares()
}

// memoryOf decides whether weights, of so many bytes, and KV cache of a model exist once for the
// cores and a device that runs phases; nil phases: those that the engine will choose.
func memoryOf(dev device.Device, shape *plans.ModelShape, weights int64, phases []phase.Phase) *unified.Memory {
	l := unified.Load{Weights: weights, Available: -1}
	onCores := phase.Count - len(phases)
	if onCores > 0 {
		l.CoresRead = l.Weights * int64(deviceforecast.Reference.Output)
	}
	if onCores == 1 || phases == nil {
		const keysAndValues, halfBytes = 2, 2
		position := int64(keysAndValues * halfBytes * shape.KVHeads * shape.HeadDim * shape.Layers)
		l.Copied = position * int64(deviceforecast.Reference.Prompt)
	}
	if free := mem.Available(); free >= 0 {
		l.Available = max(0, free-l.Weights)
	}
	return unified.New(dev, l, nil)
}
