package microkernel

import "unsafe"

// Widener turns packed panels of one weight type into float32 panels, exactly: what a slice with many rows reads instead
// of widening in every tile (panel widening). It is immutable and safe for concurrent use.
type Widener struct{ t WeightType }

// NewWidener returns the widener of a weight type for an instruction set.
func NewWidener(_ ISA, t WeightType) (*Widener, error) { return &Widener{t}, nil }

// Run writes the elements [k0, k1) of one packed panel to dst as [k1-k0][16]float32. k0 is a multiple of KStep; k1 is too, or
// the end of K.
func (w *Widener) Run(dst, panel unsafe.Pointer, k0, k1 int) {
	unpackRows(w.t, panel, k0, unsafe.Slice((*panelRow)(dst), k1-k0))
}
