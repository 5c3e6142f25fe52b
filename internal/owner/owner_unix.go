//go:build unix

// Package owner tells who owns a file.
package owner

import (
	"io/fs"
	"os"
	"syscall"
)

// IsUser reports whether a file belongs to the user of this process.
func IsUser(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(s.Uid) == os.Geteuid()
}
