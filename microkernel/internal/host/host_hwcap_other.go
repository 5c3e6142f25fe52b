//go:build arm64 && !linux

package host

const (
	hwcap2BF16    = 1 << 14
	hwcap2SMEInt8 = 1 << 26
)

// hwcap2 is unknown here.
func hwcap2() uintptr { return 0 }

// streamingBits is the length of the vectors in the streaming mode of SME: unknown here.
func streamingBits() int { return 0 }
