package kernel

import (
	"fmt"
	"slices"
	"sync"

	"sandwich/microkernel/qtype"
)

// Limits of a spec, in addition to the number of registers.
const (
	MaxMR       = 24
	MaxUnitMR   = 32 // of a matrix unit
	MaxNR       = 128
	MaxKU       = 32
	MaxPrefetch = 8192
)

// Validate returns why no kernel can be generated for the spec, or nil. It does not check whether
// this host can run it; see Needs.
func (s Spec) Validate() error {
	if err := s.validate(); err != nil {
		return fmt.Errorf("kernel spec %s: %w", s, err)
	}
	return nil
}

func (s Spec) validate() error {
	switch {
	case s.ISA.Target() == nil:
		return fmt.Errorf("unknown instruction set")
	case s.Compute >= Computes:
		return fmt.Errorf("unknown compute path")
	case !s.B.Known():
		return fmt.Errorf("unknown weight type")
	case s.Form >= Forms || !s.Dot.known():
		return fmt.Errorf("unknown form or dot product")
	case s.MR < 1 || s.MR > s.maxMR():
		return fmt.Errorf("MR %d is not within 1 and %d", s.MR, s.maxMR())
	case s.NR < qtype.PanelWidth || s.NR > MaxNR || s.NR%qtype.PanelWidth != 0:
		return fmt.Errorf("NR %d is not a multiple of %d within %d", s.NR, qtype.PanelWidth, MaxNR)
	case s.KU < 1 || s.KU > MaxKU || s.KU&(s.KU-1) != 0:
		return fmt.Errorf("KU %d is not a power of two within %d", s.KU, MaxKU)
	case s.Prefetch < 0 || s.Prefetch > MaxPrefetch || s.Prefetch%64 != 0:
		return fmt.Errorf("prefetch distance %d is not a multiple of 64 within %d", s.Prefetch, MaxPrefetch)
	case s.Spread && s.Prefetch > 0:
		return fmt.Errorf("spread prefetch and prefetch distance %d exclude each other; set one of them", s.Prefetch)
	case !slices.Contains(s.ISA.Target().Forms, s.Form):
		return fmt.Errorf("only %s has kernels of form %s", withForm(s.Form), formNames[s.Form])
	}
	if err := s.validateCompute(); err != nil {
		return err
	}
	return s.legal()
}

// maxMR returns the largest MR of kernels like this one.
func (s Spec) maxMR() int {
	if s.MatrixUnit() {
		return MaxUnitMR
	}
	return MaxMR
}

// CanPrefetch reports whether kernels like this one may prefetch at a distance. Plain Go and matrix
// units may not.
func (s Spec) CanPrefetch() bool {
	return s.ISA.Generates() && s.WithPrefetch(64).validate() == nil
}

// CanSpread reports whether a spec like this one is valid with its prefetch spread over all row
// tiles (Spec.Spread). False for plain Go.
func (s Spec) CanSpread() bool { return s.ISA.Generates() && s.WithSpread().validate() == nil }

// legality caches the verdicts of targets, by Spec. A target allocates registers to answer, and a
// plan asks for hundreds of schedules.
var legality sync.Map

// verdict is an error or nil, in a form that a sync.Map can hold.
type verdict struct{ error }

// legal asks the target. The result depends only on whether there is a prefetch distance, not on
// its length.
func (s Spec) legal() error {
	s.Prefetch = min(s.Prefetch, 64)
	known, ok := legality.Load(s)
	if !ok {
		known, _ = legality.LoadOrStore(s, verdict{s.ISA.Target().GEMM.Legal(s)})
	}
	return known.(verdict).error
}

// validateCompute checks the compute path against the weight type, the dot product and KU.
func (s Spec) validateCompute() error {
	dot, generates := s.Dot.info(), s.ISA.Generates()
	switch {
	case s.Compute == ComputeInt8 && !s.B.Quantized():
		return fmt.Errorf("the int8 path is for quantized weights")
	case !s.Compute.Takes(s.B) && s.Compute == ComputeInt8Superblock:
		return fmt.Errorf("the path %s is for weights in blocks of %d", s.Compute, ActQ8Group)
	case !s.Compute.Takes(s.B) && s.Compute == ComputeInt8K:
		return fmt.Errorf("the path %s is for weights in blocks of %d with integer scales", s.Compute, ActQ8Group)
	case s.Compute == ComputeInt8Superblock && s.MatrixUnit():
		return fmt.Errorf("matrix units have no kernels of the path %s", s.Compute)
	case s.Compute.RoundsBF16() && s.B != qtype.BF16:
		return fmt.Errorf("the path %s is for bf16 weights", s.Compute)
	case s.Compute == ComputeF32 && s.Dot != NoDot:
		return fmt.Errorf("an f32 kernel has no dot product")
	case !generates && s.Dot != NoDot:
		return fmt.Errorf("plain Go has no dot product instruction")
	case s.Compute.Quantizes() && generates && dot.Compute != ComputeInt8:
		return fmt.Errorf("an int8 kernel needs a dot product of integers")
	case s.Compute == ComputeBF16 && dot.Compute != ComputeBF16:
		return fmt.Errorf("a bf16 kernel needs a dot product of bfloat16")
	case s.Compute == ComputeBF16Tile && generates && dot.Compute != ComputeBF16Tile:
		return fmt.Errorf("a kernel of the path %s needs the dot product %s", s.Compute, TDPBF16)
	case s.Compute == ComputeBF16Tile && generates && s.KU != TileK:
		return fmt.Errorf("KU of a kernel of the path %s must be %d", s.Compute, TileK)
	case s.Dot != NoDot && !slices.Contains(s.ISA.Target().Dots, s.Dot):
		return fmt.Errorf("dot product %s does not exist on %s", s.Dot, s.ISA)
	case generates && s.B.Quantized() && s.KU != qtype.SubBlockK:
		return fmt.Errorf("KU of a kernel for quantized weights must be %d", qtype.SubBlockK)
	case generates && s.B == qtype.BF16 && s.KU < 2:
		return fmt.Errorf("KU must be even for bf16, which is packed in pairs")
	}
	return nil
}
