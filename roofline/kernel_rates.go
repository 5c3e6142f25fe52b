package roofline

import (
	"fmt"
	"iter"
	"slices"

	"sandwich/microkernel"
	"sandwich/profiles"
)

// BF16Rates holds two multiply-add peaks of one instruction set, measured with the same number of
// PUs. plans/heuristic decides whether bf16 is worth its rounding.
type BF16Rates struct {
	F32, BF16 float64 // FLOP/s
	PUs       int
}

// BF16Rates returns the measured rates of an instruction set with the smallest number of PUs for
// which both exist. Each is the best of its samples, since other load only slows a core down. It
// returns false if either was not measured; quoted and assumed figures are ignored.
func (m *Machine) BF16Rates(isa microkernel.ISA) (BF16Rates, bool) {
	rates := map[int]*BF16Rates{}
	for c := range m.computed(isa) {
		if rates[c.PUs] == nil {
			rates[c.PUs] = &BF16Rates{PUs: c.PUs}
		}
		switch c.Type {
		case microkernel.ComputeF32.String():
			rates[c.PUs].F32 = max(c.Median, c.Max)
		case microkernel.ComputeBF16.String():
			rates[c.PUs].BF16 = max(c.Median, c.Max)
		}
	}
	var best BF16Rates
	for _, r := range rates {
		if r.F32 > 0 && r.BF16 > 0 && (best.PUs == 0 || r.PUs < best.PUs) {
			best = *r
		}
	}
	return best, best.PUs > 0
}

// computed yields the measured compute ceilings of an instruction set.
func (m *Machine) computed(isa microkernel.ISA) iter.Seq[*profiles.Ceiling] {
	return func(yield func(*profiles.Ceiling) bool) {
		for i := range m.profile.Ceilings {
			c := &m.profile.Ceilings[i]
			measured := c.Kind == profiles.Compute && c.Device == "" && c.ISA == isa.String() && c.Measured()
			if measured && !yield(c) {
				return
			}
		}
	}
}

// String compares the rates, for example "bf16 reaches 405.6 GFLOP/s on 1 PU, 1.97 times the 205.5
// of f32".
func (r BF16Rates) String() string {
	pus := "PU"
	if r.PUs > 1 {
		pus = "PUs"
	}
	return fmt.Sprintf("bf16 reaches %.4g GFLOP/s on %d %s, %.2f times the %.4g of f32", r.BF16/1e9, r.PUs, pus,
		r.BF16/r.F32, r.F32/1e9)
}

// AttentionRates holds the FLOP/s of the attention of one core on cached blocks, by dot product.
// plans/heuristic decides whether a dot product is worth its rounding.
type AttentionRates map[microkernel.AttentionDot]float64

// AttentionRates returns the measured rates of attention on prompts with one PU and the kernels of
// an instruction set. Each is the best of its samples; see BF16Rates. Quoted and assumed figures
// are ignored.
func (m *Machine) AttentionRates(isa microkernel.ISA) AttentionRates {
	return m.attentionRates(isa, profiles.AttentionType)
}

// AttentionStepRates returns the measured rates of attention on single tokens; see AttentionRates.
func (m *Machine) AttentionStepRates(isa microkernel.ISA) AttentionRates {
	return m.attentionRates(isa, profiles.AttentionStepType)
}

func (m *Machine) attentionRates(isa microkernel.ISA,
	typeOf func(microkernel.AttentionDot) string) AttentionRates {
	rates := AttentionRates{}
	for c := range m.computed(isa) {
		for _, d := range microkernel.AttentionDots() {
			if c.PUs == 1 && c.Type == typeOf(d) {
				rates[d] = max(rates[d], c.Median, c.Max)
			}
		}
	}
	return rates
}

// Gain compares a dot product with float32, for example "attention by tdpbf16 reaches 812.4 GFLOP/s
// on a core, 4.13 times the 196.7 of f32".
func (r AttentionRates) Gain(d microkernel.AttentionDot) string {
	f32 := r[microkernel.AttendF32]
	return fmt.Sprintf("attention by %s reaches %.4g GFLOP/s on a core, %.2f times the %.4g of f32", d, r[d]/1e9,
		r[d]/f32, f32/1e9)
}

// MatrixUnitRates holds int8 rates of one PU with a matrix unit, in OP/s: of the unit alone, of a
// q8_0 kernel on it including loads, stores and scales, of the vector dot products, and of a vector
// kernel for the same product.
type MatrixUnitRates struct{ Unit, Kernel, Vectors, VectorKernel float64 }

// MatrixUnitRates returns the rates of an instruction set from the best samples; see BF16Rates. The
// rate of the kernel is at most the PU's share of the unit; see unitShare. It returns false if one
// of them was not measured.
func (m *Machine) MatrixUnitRates(isa microkernel.ISA) (r MatrixUnitRates, ok bool) {
	for c := range m.computed(isa) {
		if c.PUs != 1 {
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
	if share := m.unitShare(isa); share > 0 {
		r.Kernel = min(r.Kernel, share)
	}
	return r, r.Unit > 0 && r.Kernel > 0 && r.Vectors > 0 && r.VectorKernel > 0
}

// KernelRates holds rates of one PU of entire kernels, in OP/s or FLOP/s, by
// microkernel.KernelTypes.
type KernelRates map[string]float64

// KernelRates returns the measured rates of an instruction set from the best samples; see
// BF16Rates. Those of kernels on a matrix unit are at most what the PU's share of it allows; see
// unitShare.
func (m *Machine) KernelRates(isa microkernel.ISA) KernelRates {
	r := KernelRates{}
	for c := range m.computed(isa) {
		if c.PUs == 1 && slices.Contains(microkernel.KernelTypes(), c.Type) {
			r[c.Type] = max(r[c.Type], c.Median, c.Max)
		}
	}
	share := m.unitShare(isa)
	for typ, products := range unitProducts {
		if share > 0 && r[typ] > share/products {
			r[typ] = share / products
		}
	}
	return r
}

// unitProducts are the kernels on a matrix unit, and the products of bytes, in time, that the unit
// does for one of theirs: two planes, or bfloat16 at half of the rate.
var unitProducts = map[string]float64{microkernel.Int8Kernel: 1, microkernel.Int8BlockKernel: 1,
	microkernel.Int8KKernel: 2, microkernel.Int8KOverlapKernel: 2, microkernel.BF16TileKernel: 2}

// unitShare returns the rate of products of bytes that a PU has of a matrix unit while all PUs use
// it, in OP/s, from the best sample with the most PUs. It is 0 if it was not measured with several.
// PUs that share a unit have less than one PU alone.
func (m *Machine) unitShare(isa microkernel.ISA) float64 {
	largest, share := 1, 0.0
	for c := range m.computed(isa) {
		if c.Type == microkernel.ComputeInt8.String() && c.PUs > largest {
			largest, share = c.PUs, max(c.Median, c.Max)/float64(c.PUs)
		}
	}
	return share
}

// String compares the rates.
func (r MatrixUnitRates) String() string {
	return fmt.Sprintf("a q8_0 kernel on the matrix unit reaches %.4g GOP/s on 1 PU (the unit alone %.4g), one on "+
		"vectors %.4g (their dot products alone %.4g)", r.Kernel/1e9, r.Unit/1e9, r.VectorKernel/1e9, r.Vectors/1e9)
}
