package bundle

import (
	"sandwich/microkernel"
	"sandwich/roofline"
)

// Rounding returns why the plan is not exact, with the measured rates that justify its bf16 paths
// and its attention dot product if the host profile has them. It returns "" for an exact plan.
func (b *Bundle) Rounding() string {
	why := b.pairRounding()
	d, r := b.Plan.Attention, roofline.NewMachine(&b.Host).AttentionRates(b.Plan.WidestISA())
	if !d.Exact() && r[d] > 0 && r[microkernel.AttendF32] > 0 {
		why += ": " + r.Gain(d)
	}
	return why
}

func (b *Bundle) pairRounding() string {
	why := b.Plan.Rounding()
	if w, ok := b.Plan.InexactWeight(); !ok || w.Compute != microkernel.ComputeBF16 {
		return why
	}
	for _, k := range b.Plan.Kernels() {
		if k.Compute != microkernel.ComputeBF16 {
			continue
		}
		if r, ok := roofline.NewMachine(&b.Host).BF16Rates(k.ISA); ok {
			return why + ": " + r.String()
		}
	}
	return why
}

// Unit describes the measured rates of the matrix unit that the plan's kernels use. It returns ""
// if no kernel uses one or the profile lacks the rates.
func (b *Bundle) Unit() string {
	for _, k := range b.Plan.Kernels() {
		if !k.MatrixUnit() {
			continue
		}
		if r, ok := roofline.NewMachine(&b.Host).MatrixUnitRates(k.ISA); ok {
			return r.String()
		}
	}
	return ""
}
