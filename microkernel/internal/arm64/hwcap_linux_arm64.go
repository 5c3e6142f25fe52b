package arm64

import "golang.org/x/sys/unix"

// Bits of AT_HWCAP2.
const (
	hwcap2BF16    = 1 << 14
	hwcap2SME     = 1 << 23
	hwcap2SMEInt8 = 1 << 26 // HWCAP2_SME_I8I32
)

// hwcap2 returns AT_HWCAP2 of the auxiliary vector, or 0 if the system provides none.
func hwcap2() uintptr {
	const tag = 26 // AT_HWCAP2
	aux, err := unix.Auxv()
	if err != nil {
		return 0
	}
	for _, a := range aux {
		if a[0] == tag {
			return a[1]
		}
	}
	return 0
}

// streamingBits returns the length in bits of the streaming vectors of SME that the system gives a
// thread, or 0 without SME.
func streamingBits() int {
	const getVL, bytes = 64, 0xFFFF // PR_SME_GET_VL
	// The ZA array of longer vectors, 64 KiB, does not fit the signal stacks of the Go runtime.
	const longest = 128
	if hwcap2()&hwcap2SME == 0 {
		return 0
	}
	vl, err := unix.PrctlRetInt(getVL, 0, 0, 0, 0)
	if vl &= bytes; err != nil || vl > longest {
		return 0
	}
	return 8 * vl
}
