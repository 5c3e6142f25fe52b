package amd64

import (
	"github.com/klauspost/cpuid/v2"

	"sandwich/microkernel/internal/kernel"
)

// detect returns the features of this machine. The cpuid library reads CPUID leaf 7 and clears the
// features whose registers the operating system does not save (XCR0).
func detect() kernel.Features {
	var f kernel.Features
	set := func(bit kernel.Features, ids ...cpuid.FeatureID) {
		if cpuid.CPU.Supports(ids...) {
			f |= bit
		}
	}
	set(kernel.HasAVX2, cpuid.AVX, cpuid.AVX2, cpuid.FMA3, cpuid.F16C, cpuid.OSXSAVE)
	set(kernel.HasAVX512, cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL, cpuid.OSXSAVE)
	set(kernel.HasAVXVNNI, cpuid.AVXVNNI)
	set(kernel.HasVNNI, cpuid.AVX512VNNI)
	set(kernel.HasBF16, cpuid.AVX512BF16)
	set(kernel.HasVBMI, cpuid.AVX512VBMI)
	set(kernel.HasFP16, cpuid.AVX512FP16)
	if cpuid.CPU.Supports(cpuid.AMXTILE, cpuid.AMXINT8, cpuid.AMXBF16) && requestTiles() {
		f |= kernel.HasAMX
	}
	return f.Closed()
}
