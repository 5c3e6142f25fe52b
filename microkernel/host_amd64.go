package microkernel

import "github.com/klauspost/cpuid/v2"

// detect is what this machine can run. The library behind it reads CPUID leaf 7 and clears what XCR0 says the operating
// system does not save.
func detect() Features {
	var f Features
	set := func(bit Features, ids ...cpuid.FeatureID) {
		if cpuid.CPU.Supports(ids...) {
			f |= bit
		}
	}
	set(HasAVX2, cpuid.AVX, cpuid.AVX2, cpuid.FMA3, cpuid.F16C, cpuid.OSXSAVE)
	set(HasAVX512, cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL, cpuid.OSXSAVE)
	set(HasAVXVNNI, cpuid.AVXVNNI)
	set(HasVNNI, cpuid.AVX512VNNI)
	set(HasBF16, cpuid.AVX512BF16)
	set(HasVBMI, cpuid.AVX512VBMI)
	set(HasFP16, cpuid.AVX512FP16)
	if cpuid.CPU.Supports(cpuid.AMXTILE, cpuid.AMXINT8) && mayUseTiles() {
		f |= HasAMX
	}
	return f.closed()
}
