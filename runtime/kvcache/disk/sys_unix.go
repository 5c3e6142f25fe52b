//go:build unix

package disk

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// lock waits for the lock of a file.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }

// tryLock takes the lock of a file unless another process has it. It returns true on a file system
// without locks.
func tryLock(f *os.File) bool {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return err == nil || !errors.Is(err, syscall.EWOULDBLOCK)
}

// noFollow makes an open fail on a symbolic link.
const noFollow = syscall.O_NOFOLLOW

// full reports whether an error means that a file system has no room.
func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// readOnly reports whether an error means that a folder cannot be written.
func readOnly(err error) bool {
	return errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission)
}
