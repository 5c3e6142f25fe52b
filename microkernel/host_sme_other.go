//go:build arm64 && !linux

package microkernel

// streamingBits is the length of the vectors in the streaming mode of SME: unknown here.
func streamingBits() int { return 0 }
