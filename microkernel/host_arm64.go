package microkernel

import "golang.org/x/sys/cpu"

// detect is what this machine can run, from HWCAP. Advanced SIMD is part of every arm64 that Go runs on.
func detect() Features {
	f := HasNEON
	if cpu.ARM64.HasASIMDDP {
		f |= HasDotProd
	}
	if cpu.ARM64.HasI8MM {
		f |= HasI8MM
	}
	if hwcap2()&hwcap2BF16 != 0 {
		f |= HasArmBF16
	}
	switch bits := streamingBits(); {
	case bits >= 512:
		f |= HasSME | HasSME512
	case bits >= 256:
		f |= HasSME
	}
	if f.Has(HasSME) && bytesMultiply() {
		f |= HasSMEInt8
	}
	return f.closed()
}
