package microkernel

import (
	"sync"

	"github.com/klauspost/cpuid/v2"
)

// Host is what this machine can run, from HWCAP. Advanced SIMD is part of every arm64 that Go runs on.
var Host = sync.OnceValue(func() Features {
	f := HasNEON
	if cpuid.CPU.Supports(cpuid.ASIMDDP) {
		f |= HasDotProd
	}
	return f
})
