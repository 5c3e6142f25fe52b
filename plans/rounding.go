package plans

import "sandwich/microkernel"

// Rounding is that of the plan, with the rates behind a path of bf16, and behind what attention
// adds up by, where the host's profile has them.
func (b *Bundle) Rounding() string {
	why := b.pairRounding()
	d, r := b.Plan.Attention, b.Host.AttendRates(b.Plan.widestISA())
	if !d.Exact() && r[d] > 0 && r[microkernel.AttendF32] > 0 {
		why += ": " + r.Gain(d)
	}
	return why
}

func (b *Bundle) pairRounding() string {
	why := b.Plan.Rounding()
	if w, ok := b.Plan.inexactWeight(); !ok || w.Compute != microkernel.ComputeBF16 {
		return why
	}
	for _, k := range b.Plan.Kernels() {
		if k.Compute != microkernel.ComputeBF16 {
			continue
		}
		if r, ok := b.Host.PairRates(k.ISA); ok {
			return why + ": " + r.String()
		}
	}
	return why
}

// Unit says of a plan with kernels on a matrix unit what the host's profile has of its rates; ""
// where there are no such kernels, or no such rates.
func (b *Bundle) Unit() string {
	for _, k := range b.Plan.Kernels() {
		if !k.MatrixUnit() {
			continue
		}
		if r, ok := b.Host.UnitRates(k.ISA); ok {
			return r.String()
		}
	}
	return ""
}
