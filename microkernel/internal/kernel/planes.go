package kernel

import "sandwich/microkernel/qtype"

// Matrix units multiply weights of the path ComputeInt8K by their integer scales before the
// product. The scaled weights need up to fifteen bits, so each is split into two signed bytes,
// high*2^PlaneShift + low. A call unpacks its panels to such planes once, for all of its rows. An
// unpacked superblock of a panel consists of
//
//	[2 planes][64][16 columns][4 k]int8  high bytes, then low ones
//	[16]float32                          scales
//	[16]float32                          scales of offsets
//	[8][16][2]16-bit integer             offsets of consecutive spans, in pairs
const (
	PlaneShift  = 7
	PlaneGroup  = 4 * qtype.PanelWidth // bytes of four k
	PlaneBytes  = ActQ8Group * qtype.PanelWidth
	PlaneScales = 2 * PlaneBytes                     // offset of the scales
	PlanePairs  = PlaneScales + 2*4*qtype.PanelWidth // offset of the pairs
	PlanesBlock = PlanePairs + 8*PlaneGroup
)
