package model

import (
	"slices"

	"sandwich/runtime/gguf"
)

// Model is a model as a flat list of ops over weights. Config.Model makes one without values from a
// configuration; Load makes one whose weights point into a file. It is immutable afterwards.
type Model struct {
	Arch    string
	Name    string
	Dims    Dims
	Experts Experts // zero in a dense model
	Eps     float32
	Tied    bool         // the head is the embedding
	Outputs int          // width of BufLogits: the vocabulary, or the output row of a pooled model
	Pooling Pooling      // of a model with one output row per text
	Scores  bool         // the output row has scores and is not a vector
	Embed   *gguf.Tensor // [vocab, hidden]
	Weights []Weight
	Ops     []Op
}

// Ropes returns the rotations of the model's layers without duplicates, in the order of first use.
func (m *Model) Ropes() (list []*Rope) {
	for i := range m.Ops {
		if r := m.Ops[i].Rope; r != nil && !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return list
}

// Width returns the number of float32 elements in a row of a buffer, 0 if the model does not use
// it.
func (m *Model) Width(b Buf) int {
	switch b {
	case BufX, BufH, BufY:
		return m.Dims.Hidden
	case BufLogits:
		return m.Outputs
	}
	largest := 0
	for i := range m.Ops {
		op := &m.Ops[i]
		switch {
		case b == BufAtt && op.Kind == OpAttention:
			largest = max(largest, op.Heads.Q*op.Heads.Dim)
		case b == BufAtt && op.Kind == OpConv && op.Delta == nil:
			largest = max(largest, op.Conv.N)
		case b == BufAtt && op.Kind == OpDelta:
			largest = max(largest, op.Delta.ValueHeads*op.Delta.ValueDim)
		case b == BufV && op.KeysAsValues, (b == BufK || b == BufV) && op.Kind == OpLatent:
			largest = max(largest, op.Heads.KV*op.Heads.Dim)
		case b == BufQ && op.Kind == OpLatent:
			largest = max(largest, op.Heads.Q*op.Heads.Dim)
		case op.Kind == OpHeads && b == op.Outs[0]:
			largest = max(largest, op.Heads.Q*op.OutStep)
		}
		for j, out := range op.Outs {
			if out == b && len(op.W) > 0 {
				largest = max(largest, m.Weights[op.W[j]].N)
			}
		}
	}
	return largest
}

// RowsOf returns the number of rows of a buffer in a forward with the given number of rows. Buffers
// of experts have one row per row and expert used. It does not apply to BufLogits.
func (m *Model) RowsOf(b Buf, rows int) int {
	if m.Experts.Count > 0 && (b == BufGate || b == BufExpert) {
		return rows * m.Experts.Used
	}
	return rows
}

// Pooled reports whether the model computes a vector or scores of a text and generates no text.
func (m *Model) Pooled() bool { return m.Pooling != NoPooling }

// WholeText reports whether a text must be in one forward: for bidirectional attention, and for
// mean or first pooling.
func (m *Model) WholeText() bool {
	return m.Pooling == MeanPooling || m.Pooling == FirstPooling || slices.ContainsFunc(m.Ops, func(op Op) bool {
		return op.Kind == OpAttention && op.Attn.Bidirectional
	})
}

// LearnedPositions reports whether positions index a learned table, which limits the length of a
// text.
func (m *Model) LearnedPositions() bool {
	return slices.ContainsFunc(m.Ops, func(op Op) bool { return op.PosEmbed != nil })
}

// HasLayerNorm reports whether the model has LayerNorms.
func HasLayerNorm(m *Model) bool {
	return slices.ContainsFunc(m.Ops, func(op Op) bool { return op.Shift != nil })
}
