package occupancy

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// lock takes the lock of a PU and returns the open file that holds it. The kernel releases the lock
// when the process ends. The error is errTaken where another process holds it, and another one
// where no file can be made or locked.
func lock(folder string, pu int) (*os.File, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	const flags = os.O_RDWR | os.O_CREATE | unix.O_NOFOLLOW | unix.O_NONBLOCK
	f, err := os.OpenFile(filepath.Join(folder, "pu"+strconv.Itoa(pu)), flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errTaken
	}
	return nil, err
}
