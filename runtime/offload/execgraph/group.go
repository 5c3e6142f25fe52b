package execgraph

import (
	"strconv"
	"strings"

	"sandwich/runtime/model"
)

// Names of kernels.
const (
	kernelEmbed     = "embed"
	kernelInput     = "qkv"       // norm and projections before attention or a recurrence
	kernelAttention = "attention" // attention or a recurrence
	kernelOutput    = "ffn"       // output projection and feed-forward part
	kernelExperts   = "experts"
	kernelHead      = "head"
)

// group is a range of ops that form a kernel.
type group struct {
	name    string
	layer   int  // -1 outside the layers
	onCores bool // some op has no kernel on devices
	ops     []int
}

// groupOps divides the ops of a model into kernels. A layer has one kernel before its attention or
// recurrence, one for it and one after it. Experts are a kernel of their own, so that they can run
// on another target than the rest.
func groupOps(m *model.Model) (list []group) {
	mixed := false // the attention of the layer has begun
	last := -1
	for i := range m.Ops {
		op := &m.Ops[i]
		layer := layerOf(op)
		if layer != last {
			mixed, last = false, layer
		}
		name := kernelOutput
		switch {
		case layer < 0:
			name = kernelHead
			if op.Kind == model.OpEmbed || op.Kind == model.OpInputs {
				name = kernelEmbed
			}
		case mixes(op):
			name, mixed = kernelAttention, true
		case op.Kind.OfExperts():
			name = kernelExperts
		case !mixed:
			name = kernelInput
		}
		n := len(list)
		if n == 0 || list[n-1].name != name || list[n-1].layer != layer {
			list = append(list, group{name: name, layer: layer})
			n++
		}
		g := &list[n-1]
		g.ops, g.onCores = append(g.ops, i), g.onCores || !onDevices(op)
	}
	return list
}

// onDevices reports whether devices have kernels of a kind of ops. The cores compute embeddings.
func onDevices(op *model.Op) bool {
	switch op.Kind {
	case model.OpNorm, model.OpAddNorm, model.OpMatMul, model.OpRotate, model.OpAttention, model.OpGather:
		return true
	}
	return false
}

// mixes reports whether an op combines positions of a sequence.
func mixes(op *model.Op) bool {
	return op.Kind == model.OpAttention || op.Kind == model.OpConv || op.Kind == model.OpDelta
}

// layerOf returns the layer of an op by its name, -1 outside the layers. Op.Layer is not set for
// norms.
func layerOf(op *model.Op) int {
	if rest, ok := strings.CutPrefix(op.Name, "blk."); ok {
		number, _, _ := strings.Cut(rest, ".")
		if n, err := strconv.Atoi(number); err == nil {
			return n
		}
	}
	return -1
}

// opName returns the name of an op without the layer.
func opName(op *model.Op) string {
	if layerOf(op) < 0 {
		return op.Name
	}
	_, name, _ := strings.Cut(strings.TrimPrefix(op.Name, "blk."), ".")
	return name
}
