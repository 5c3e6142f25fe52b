//go:build !linux

package mem

// ResidencyOf cannot tell on this system.
func ResidencyOf([]byte) (Residency, error) { return Residency{}, nil }
