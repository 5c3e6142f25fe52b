package occupancy

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// locks is a file in which a process locks the byte at the index of each PU that it holds. The
// kernel releases the locks when the process ends. One open file serves all PUs.
type locks struct{ file *os.File }

// openLocks opens or creates the file in a folder, which it creates if missing.
func openLocks(folder string) (*locks, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	const flags = os.O_RDWR | os.O_CREATE | unix.O_NOFOLLOW | unix.O_NONBLOCK
	f, err := os.OpenFile(filepath.Join(folder, "pus"), flags, 0o600)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		_ = f.Close()
		return nil, errors.ErrUnsupported
	}
	return &locks{f}, nil
}

// hold locks the byte of a PU. It returns errTaken if another process has locked it, and another
// error if the file system has no locks.
func (l *locks) hold(pu int) error {
	err := l.set(pu, unix.F_WRLCK)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return errTaken
	}
	return err
}

// release unlocks the byte of a PU.
func (l *locks) release(pu int) { _ = l.set(pu, unix.F_UNLCK) }

// set changes a lock of the open file, not of the process (F_OFD_SETLK, Linux 3.15).
func (l *locks) set(pu int, kind int16) error {
	return unix.FcntlFlock(l.file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Start: int64(pu), Len: 1})
}
