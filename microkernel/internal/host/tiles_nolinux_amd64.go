//go:build !linux

package host

// mayUseTiles: only Linux is known to save the tile registers.
func mayUseTiles() bool { return false }
