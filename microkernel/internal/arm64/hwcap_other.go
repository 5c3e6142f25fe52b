//go:build arm64 && !linux

package arm64

const (
	hwcap2BF16    = 1 << 14
	hwcap2SMEInt8 = 1 << 26
)

// hwcap2 returns 0: the features are unknown on this system.
func hwcap2() uintptr { return 0 }

// streamingBits returns 0: SME is not used on this system.
func streamingBits() int { return 0 }
