//go:build !amd64 && !arm64

package sys

// Pause does nothing: no spin hint is known.
func Pause(uint32) {}
