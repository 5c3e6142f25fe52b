package profiles

import (
	"fmt"

	"sandwich/microkernel"
)

// UnitRates holds int8 rates of one PU with a matrix unit, in OP/s: of the unit alone, of a q8_0
// kernel on it including loads, stores and scales, of the vector dot products, and of a vector
// kernel for the same product.
type UnitRates struct{ Unit, Kernel, Vectors, VectorKernel float64 }

// UnitRates returns the rates of an instruction set from the best samples; see PairRates. It
// returns false if one of them was not measured.
func (p *Profile) UnitRates(isa microkernel.ISA) (r UnitRates, ok bool) {
	for _, c := range p.Ceilings {
		if c.Kind != Compute || c.Device != "" || c.ISA != isa.String() || !c.Measured() || c.PUs != 1 {
			continue
		}
		switch rate := max(c.Median, c.Max); c.Type {
		case microkernel.ComputeInt8.String():
			r.Unit = max(r.Unit, rate)
		case microkernel.Int8Kernel:
			r.Kernel = max(r.Kernel, rate)
		case microkernel.Int8Vectors:
			r.Vectors = max(r.Vectors, rate)
		case microkernel.Int8VectorKernel:
			r.VectorKernel = max(r.VectorKernel, rate)
		}
	}
	return r, r.Unit > 0 && r.Kernel > 0 && r.Vectors > 0 && r.VectorKernel > 0
}

// String compares the rates.
func (r UnitRates) String() string {
	return fmt.Sprintf("a q8_0 kernel on the matrix unit reaches %.4g GOP/s on 1 PU (the unit alone %.4g), one on "+
		"vectors %.4g (their dot products alone %.4g)", r.Kernel/1e9, r.Unit/1e9, r.VectorKernel/1e9, r.Vectors/1e9)
}
