//go:build !linux

package mem

// Available cannot be told on this system.
func Available() int64 { return -1 }

// AvailableOn cannot be told on this system.
func AvailableOn(int) int64 { return -1 }
