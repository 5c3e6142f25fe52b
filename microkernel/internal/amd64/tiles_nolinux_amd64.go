//go:build !linux

package amd64

// requestTiles returns false: only Linux is known to save the tile registers.
func requestTiles() bool { return false }
