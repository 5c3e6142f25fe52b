//go:build unix

package codecache

import (
	"io/fs"
	"os"
	"syscall"
)

// own reports whether this user owns a file.
func own(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(s.Uid) == os.Geteuid()
}
