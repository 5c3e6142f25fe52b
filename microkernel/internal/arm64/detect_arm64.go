package arm64

import (
	"golang.org/x/sys/cpu"

	"sandwich/microkernel/internal/kernel"
)

// detect returns the features of this machine, from HWCAP. Advanced SIMD is part of every arm64
// that Go runs on.
func detect() kernel.Features {
	f := kernel.HasNEON
	if cpu.ARM64.HasASIMDDP {
		f |= kernel.HasDotProd
	}
	if cpu.ARM64.HasI8MM {
		f |= kernel.HasI8MM
	}
	if hwcap2()&hwcap2BF16 != 0 {
		f |= kernel.HasArmBF16
	}
	switch bits := streamingBits(); {
	case bits >= 512:
		f |= kernel.HasSME | kernel.HasSME512
	case bits >= 256:
		f |= kernel.HasSME
	}
	if f.Has(kernel.HasSME) && outerProductsCorrect() {
		f |= kernel.HasSMEInt8
	}
	return f.Closed()
}
