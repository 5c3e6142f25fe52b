package measure

import "sandwich/microkernel"

// attentionArithmetic returns the data type whose multiply-adds bound attention by a dot product.
// The register peak of bfloat16 tiles is not measured; they are compared with float32.
func attentionArithmetic(d microkernel.AttentionDot) string {
	switch d {
	case microkernel.AttendDPBF16:
		return microkernel.ComputeBF16.Ceiling()
	case microkernel.AttendDPBUSD:
		return microkernel.ComputeInt8.Ceiling()
	}
	return microkernel.ComputeF32.Ceiling()
}

// attentionPeak returns the kernel that measures this peak, or that of float32 if the instruction
// set has no other. Attention multiplies integers on vectors, whose peak has a separate name on
// machines with a matrix unit.
func attentionPeak(d microkernel.AttentionDot, isa microkernel.ISA) (*microkernel.Peak, error) {
	host := microkernel.Host()
	s := microkernel.PeakSpec{ISA: isa, Type: attentionArithmetic(d)}
	if d == microkernel.AttendDPBUSD && host.Has(microkernel.HasAMX) {
		s.Type = microkernel.Int8Vectors
	}
	if p, err := microkernel.NewPeak(s, host); err == nil {
		return p, nil
	}
	s.Type = microkernel.ComputeF32.Ceiling()
	return microkernel.NewPeak(s, host)
}
