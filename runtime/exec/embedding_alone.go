package exec

import (
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
)

// Lookup does what OpEmbed does for one row, without the team: the embedding of a token out of the
// model's file, scaled, and the rotations of its position. Predictions of forwards rest on how long
// that takes (`sandwich bench roofline`). It is for one goroutine.
type Lookup struct {
	table     *gguf.Tensor
	scale     float32
	row       []float32
	rotations []rotation
	angles    []float32
}

// NewLookup is that of a model whose embedding is a table of its own; nil where the head is the
// embedding, whose panels only a loaded model has, or where there is no file.
func NewLookup(m *model.Model, context int) *Lookup {
	if m.Embed == nil || m.Tied || len(m.Embed.Data) == 0 {
		return nil
	}
	l := &Lookup{table: m.Embed, scale: 1, row: make([]float32, m.Embed.Dims[0]), rotations: newRotations(m, context)}
	for _, t := range l.rotations {
		l.angles = append(l.angles, make([]float32, 2*len(t.freq))...)
	}
	for i := range m.Ops {
		if m.Ops[i].Kind == model.OpEmbed {
			l.scale = m.Ops[i].Scale
		}
	}
	return l
}

// Row looks up a token at a position.
func (l *Lookup) Row(token, pos int) error {
	size := l.table.Type.RowBytes(l.table.Dims[0])
	if err := gguf.Dequantize(l.row, l.table.Type, l.table.Data[token*size:][:size]); err != nil {
		return err
	}
	scaleRow(l.row, l.scale)
	at := 0
	for _, t := range l.rotations {
		t.angles(l.angles[at:], pos)
		at += 2 * len(t.freq)
	}
	return nil
}
