package heuristic

import (
	"sandwich/microkernel"
	"sandwich/microkernel/qtype"
)

// unitCycles is rowCycles of an int8 kernel on a matrix unit: weights are unpacked to bytes once
// for all rows, and the unit then is UnitGain times as fast as the fastest vector kernel, which
// takes vectors cycles per row of a panel. The gain was measured for q8_0; it is assumed for other
// types.
func (r Rates) unitCycles(s microkernel.Spec, m int, vectors float64) float64 {
	unpack, _ := r.work(s)
	once := (unpack + stores) / core.ports
	tiles := (m + s.MR - 1) / s.MR
	each := unitGain * vectors / r.UnitGain
	if d := s.B.Desc(); d.Affine() && d.Span() < qtype.SubBlockK {
		each += halves * float64(qtype.SubBlockK/d.Span()) / core.ports
	}
	rows := float64(max(m, tiles*minRows))
	memory := 1.12 * readCycles(s) // see rowCycles
	if s.Spread {
		return overlap(1.05*memory, 1.02*(once+rows*each))
	}
	return overlap(memory, once) + rows*each
}

// unitGain is the minimum measured gain of a matrix unit over vectors for which it is chosen. The
// measurement uses one PU; with all PUs active the gain is smaller. It is also larger than the
// noise.
const unitGain = 1.2

const (
	halves  = 4 // instructions per panel for the sums that offsets of half sub-blocks need
	stores  = 8 // instructions to store 32 k of 16 columns as bytes
	minRows = 4 // minimum time of a row tile in rows, since it loads all weights
)
