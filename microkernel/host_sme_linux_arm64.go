package microkernel

import "golang.org/x/sys/unix"

// streamingBits is the length of the vectors in the streaming mode of SME that the system gives a thread; 0 without SME.
func streamingBits() int {
	const hwcap2, sme = 26, 1 << 23 // AT_HWCAP2 and HWCAP2_SME
	const getVL, bytes = 64, 0xFFFF // PR_SME_GET_VL
	aux, err := unix.Auxv()
	if err != nil {
		return 0
	}
	for _, a := range aux {
		if a[0] == hwcap2 && a[1]&sme != 0 {
			if vl, err := unix.PrctlRetInt(getVL, 0, 0, 0, 0); err == nil {
				return vl & bytes * 8
			}
		}
	}
	return 0
}
