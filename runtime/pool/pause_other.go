//go:build !amd64 && !arm64

package pool

// pause does nothing where no spin hint is known.
func pause(uint32) {}
