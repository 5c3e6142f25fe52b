package cost

import "sandwich/runtime/model"

// state is the work of all recurrent layers: FLOP per row and bytes per sequence.
type state struct{ flop, bytes float64 }

// add adds an op. A delta rule multiplies each element of the state by the decay, and uses it in
// two sums and one update.
func (s *state) add(op *model.Op) {
	s.bytes += 2 * 4 * float64(op.StateOf()) // read and written once for all rows
	switch op.Kind {
	case model.OpConv:
		s.flop += 2 * float64(op.Conv.Width) * float64(op.Conv.N)
	case model.OpDelta:
		s.flop += deltaFLOP * float64(op.StateOf())
	}
}

// deltaFLOP is the FLOP per row and element of a delta rule's state: one product and three
// multiply-adds.
const deltaFLOP = 7

// RowFLOP returns the FLOP of an op's products, or of its delta rule, for one row; 0 for other ops.
func RowFLOP(m *model.Model, op *model.Op) (flop float64) {
	for _, wi := range op.W {
		each := 1
		if op.Kind == model.OpExperts {
			each = m.Experts.Used
		}
		flop += 2 * float64(m.Weights[wi].N) * float64(m.Weights[wi].K) * float64(each)
	}
	if op.Kind == model.OpDelta {
		flop = deltaFLOP * float64(op.StateOf())
	}
	return flop
}
