package exec

import (
	"math"
	"unsafe"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
)

// lookup does what OpEmbed does for one row, without the team: the embedding of a token out of a
// table of some rows, and the rotations of its position. Predictions of forwards rest on how long
// that takes (`sandwich bench roofline`). It is for one goroutine.
type lookup struct {
	embedding
	dst       []float32
	rotations []rotation
	angles    []float32
}

// lookupTokens is how many rows the table of a lookup has.
const lookupTokens = 64

// newLookup is that of a model whose embedding is a table of such a type, which need not be there:
// the rows are zeros.
func newLookup(m *model.Model, typ gguf.Type) *lookup {
	table := make([]byte, lookupTokens*typ.RowBytes(m.Dims.Hidden))
	l := &lookup{dst: make([]float32, m.Dims.Hidden), embedding: embedding{typ: typ, width: m.Dims.Hidden,
		table: unsafe.Pointer(unsafe.SliceData(table)), bytes: len(table)}}
	for _, r := range m.Ropes() { // how far they turn is nothing that they cost
		t := rotation{freq: make([]float64, r.Dim/2), gain: r.Gain}
		for i := range t.freq {
			t.freq[i] = math.Pow(r.Base, -float64(2*i)/float64(r.Dim))
		}
		l.rotations = append(l.rotations, t)
		l.angles = append(l.angles, make([]float32, r.Dim)...)
	}
	return l
}

// one looks up a token at a position.
func (l *lookup) one(token, pos int) error {
	if err := l.row(l.dst, token%lookupTokens); err != nil {
		return err
	}
	at := 0
	for _, t := range l.rotations {
		t.angles(l.angles[at:], pos)
		at += 2 * len(t.freq)
	}
	return nil
}
