package microkernel

import "github.com/klauspost/cpuid/v2"

// detect is what this machine can run, from HWCAP. Advanced SIMD is part of every arm64 that Go runs on.
func detect() Features {
	f := HasNEON
	if cpuid.CPU.Supports(cpuid.ASIMDDP) {
		f |= HasDotProd
	}
	return f
}
