//go:build !linux

package microkernel

// mayUseTiles: only Linux is known to save the tile registers.
func mayUseTiles() bool { return false }
