package measure

import "sandwich/microkernel"

// attentionPeak returns the kernel that measures this peak, or that of float32 if the instruction
// set has no other.
func attentionPeak(d microkernel.AttentionDot, isa microkernel.ISA) (*microkernel.Peak, error) {
	host := microkernel.Host()
	s := microkernel.PeakSpec{ISA: isa, Type: microkernel.AttentionPeakType(d, host)}
	if p, err := microkernel.NewPeak(s, host); err == nil {
		return p, nil
	}
	s.Type = microkernel.ComputeF32.Ceiling()
	return microkernel.NewPeak(s, host)
}
