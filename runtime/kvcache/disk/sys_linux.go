package disk

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openDirect opens a file for reads past the page cache, or through it if the file system does not
// support that.
func openDirect(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow|syscall.O_DIRECT, 0)
	if err != nil && !os.IsNotExist(err) {
		return os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	}
	return f, err
}

// freeBytes returns the free bytes of the file system of a folder that this user may use, or 0.
func freeBytes(dir string) int64 {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return 0
	}
	return int64(s.Bavail) * s.Bsize
}

// readVector implements vectorReader.
func (f pageFile) readVector(pieces [][]byte, at int64) bool {
	want := 0
	for _, p := range pieces {
		want += len(p)
	}
	for {
		n, err := unix.Preadv(int(f.Fd()), pieces, at)
		if err != unix.EINTR {
			return err == nil && n == want
		}
	}
}
