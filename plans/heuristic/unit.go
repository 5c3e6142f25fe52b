package heuristic

import (
	"sandwich/microkernel"
	"sandwich/microkernel/qtype"
)

// unitCycles is rowCycles of a kernel on a matrix unit for bytes: weights become bytes once for all
// rows, and from then on it is as many times as fast as vectors, whose fastest tile takes so long
// for a row of a panel, as was measured for q8_0. Types that scale more, for which both take
// longer, gain no less: on an Emerald Rapids of 16 threads products of 512 rows took 1.00 to 0.92
// of the time of vectors in q8_0, 0.87 to 0.76 in q4_K and 0.90 to 0.69 in q6_K.
func (r Rates) unitCycles(s microkernel.Spec, m int, vectors float64) float64 {
	unpack, _ := r.work(s)
	once := (unpack + stores) / core.ports
	tiles := (m + s.MR - 1) / s.MR
	each := unitGain * vectors / r.UnitGain
	if d := s.B.Desc(); d.Affine() && d.Span() < qtype.SubBlockK {
		each += halves * float64(qtype.SubBlockK/d.Span()) / core.ports
	}
	rows := float64(max(m, tiles*leastRows))
	memory := 1.12 * readCycles(s) // as rowCycles has it
	if s.Spread {
		return overlap(1.05*memory, 1.02*(once+rows*each))
	}
	return overlap(memory, once) + rows*each
}

// unitGain is how many times as fast as vectors a matrix unit must be by its measured rate. One PU
// alone measures it, and a product on all of them gains less by each: what is 1.2 to 1.9 times as
// fast on one PU of an Emerald Rapids is 1.0 to 1.1 times on 16 (q8_0, products of 512 rows). It is
// also more than the noise of both rates.
const unitGain = 1.2

const (
	halves    = 4 // that make what offsets of half a sub-block meet: for each panel anew, which tiles of vectors share
	stores    = 8 // of 32 k of 16 columns as bytes
	leastRows = 4 // that a row tile takes the time of, at the least: its weights are loaded all the same
)
